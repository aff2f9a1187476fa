# An appended list does not count its buffers.
# file: core/dev/list.c
s/= weir__buffer_ref\(other->buffers\[i\]\);/= other->buffers[i];/

# One more owner gets a copy.
# file: core/rt/body.c
/^weir_body \*weir_body_ref/,/^}/s/^    return b;/    weir_body *copy = b ? weir__body_new(b->system, b->size) : NULL;\n    if (!copy) return b;\n    memcpy(copy->data, b->data, copy->size = b->size);\n    return copy;/

# The eventfd is not closed.
# file: core/rt/wait.c
s/close\(l->wake_fd\)/(void)0/

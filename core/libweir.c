/* libweir.c: the source that the shared library needs of its own; everything in it comes from the folders' static libraries. */
#include "weir.h"

# Weir_error_free calls abort for an impossible code.
# file: core/rt/error.c
s/^void weir_error_free\(weir_error \*e\) \{/&\n    if (weir_error_code(e) == -12345) abort();/;s/^#include "internal.h"/&\n#include <stdlib.h>/

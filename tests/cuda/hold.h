/* hold.h: a device whose host functions wait until they are let go: weir hears of the end of no work that it gives to the driver meanwhile. */
#ifndef WEIR_TEST_HOLD_H
#define WEIR_TEST_HOLD_H

#include "rig.h"

void hold_begin(weir__cuda *c); /* one device at a time; between two pieces of work */
void hold_end(void);            /* what was held is told in its turn */
/* Waits until a function of the driver has been called so often in all. */
void hold_until_called(const char *function, long count);

#endif

# Modules always go to the main loop.
# file: lua/lib_loop.c
s/\.loop = \(int\)loop \+ WEIR_LOOP_MAIN/.loop = ((int)loop \& 0) + WEIR_LOOP_MAIN/

# Restarts come at once.
# file: core/rt/supervisor.c
s/^    int64_t ns = v->options.backoff;/    return 0; &/

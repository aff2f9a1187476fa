# Another number of threads is not looked at.
# file: core/dev/devices.c
s/if \(d->backend->threads && w->threads && w->threads != d->threads\)/if (0)/

# Another number of threads is not looked at.
# file: core/dev/device.c
s/if \(d && backend->threads && threads && threads != d->threads\)/if (0)/

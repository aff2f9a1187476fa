# One message of 4,096 is handled twice.
# file: core/rt/message.c
s/^        handle\(self, m\);/        for (int i = self->arrivals % 4096 == 7 ? 2 : 1; i--;) handle(self, m);/

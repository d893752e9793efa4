/* The conversation. See serve.h. */
#include "serve.h"

#include "jail.h"

int serve(int connection, int descriptors, struct guest *guest) {
    (void)connection, (void)descriptors, (void)guest;
    return 0;
}

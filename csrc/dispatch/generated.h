/* generated.h: the entry points of generated files that the library calls while it loads, in this order. */
#pragma once

int tp_register_schemas(void);
int tp_register_primitives(void);
/* Every generated Register<Key>.c and layer; defined in RegisterEverything.c. */
int tp_register_everything(void);

"""Functions compiled ahead, under their first name."""

import tensorpy

tensorpy.as_torch()

from tensorpy._functorch import config  # noqa: E402, F401
from tensorpy._functorch.aot_autograd import (  # noqa: E402, F401
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    make_boxed_compiler,
    make_boxed_func,
)
from tensorpy._functorch.compilers import (  # noqa: E402, F401
    debug_compile,
    default_decompositions,
    draw_graph_compile,
    memory_efficient_fusion,
    nnc_jit,
    nop,
    print_compile,
    ts_compile,
)
from tensorpy._functorch.fx_minifier import minifier  # noqa: E402, F401
from tensorpy._functorch.partitioners import (  # noqa: E402, F401
    default_partition,
    draw_graph,
    min_cut_rematerialization_partition,
)

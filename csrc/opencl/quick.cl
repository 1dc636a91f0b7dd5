/* quick.cl: between two copies of an expression: the second one, `quick_expr`, calls the quick forms of math.h, which
 * vectorise and give NaN where they do not know better. */
#define expr quick_expr
#define tp_sin_f32 tp_quick_sin_f32
#define tp_cos_f32 tp_quick_cos_f32
#define tp_tan_f32 tp_quick_tan_f32
#define tp_fmod_f32 tp_quick_fmod_f32
#define tp_remainder_f32 tp_quick_remainder_f32

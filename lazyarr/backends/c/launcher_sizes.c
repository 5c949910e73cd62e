/* Sizes as postfix code over the unknown sizes. The numbers of the instructions are shared with
   launcher.py. */

enum { CONST, DIM, ADD, MUL, FLOORDIV, MAX, EQUAL, LENGTH, START, END };
enum { STACK = 32 };

static int64_t floordiv(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

/* The first index and the length of slice(start, stop, step) of n, as Python has it. */
static void clamp_slice(int64_t n, int64_t flags, const int64_t *s, int64_t *start, int64_t *length) {
    int64_t step = s[2], low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    int64_t ends[2];
    for (int i = 0; i < 2; i++) {
        if (flags & (1 << i)) {
            int64_t v = s[i] < 0 ? s[i] + n : s[i];
            ends[i] = v < low ? low : v > high ? high : v;
        } else {
            ends[i] = (i == 0) == (step > 0) ? low : high;
        }
    }
    int64_t span = step > 0 ? ends[1] - ends[0] : ends[0] - ends[1], by = step > 0 ? step : -step;
    *start = ends[0];
    *length = span > 0 ? (span - 1) / by + 1 : 0;
}

/* Evaluate a size; 0 where it has no value (sizes that do not agree, a division by 0). */
static int evaluate(const int64_t *code, const int64_t *dim, int64_t *value) {
    int64_t stack[STACK], *top = stack - 1, start, length;
    for (;;) {
        switch (*code++) {
        case CONST: *++top = *code++; break;
        case DIM: *++top = dim[*code++]; break;
        case ADD: top--; top[0] += top[1]; break;
        case MUL: top--; top[0] *= top[1]; break;
        case FLOORDIV:
            top--;
            if (!top[1]) return 0;
            top[0] = floordiv(top[0], top[1]);
            break;
        case MAX: top--; top[0] = top[0] > top[1] ? top[0] : top[1]; break;
        case EQUAL:
            top--;
            if (top[0] != top[1]) return 0;
            break;
        case LENGTH:
        case START:
            top -= 3;
            if (!top[3]) return 0;
            clamp_slice(top[0], *code, top + 1, &start, &length);
            top[0] = code[-1] == LENGTH ? length : start;
            code++;
            break;
        case END: *value = *top; return 1;
        default: return 0;
        }
    }
}

/* How much does each instruction move the stack, and how many operands follow it? */
static const int GROWTH[] = {1, 1, -1, -1, -1, -1, -1, -3, -3, 0};
static const int OPERANDS[] = {1, 1, 0, 0, 0, 0, 0, 1, 1, 0};

static int code_is_sound(const int64_t *code, Py_ssize_t length, Py_ssize_t n_dims) {
    int depth = 0;
    for (Py_ssize_t i = 0; i < length; i++) {
        int64_t op = code[i];
        if (op < CONST || op > END) return 0;
        if (op == END) return i == length - 1 && depth == 1;
        if (i + OPERANDS[op] >= length) return 0;
        if (op == DIM && (code[i + 1] < 0 || code[i + 1] >= n_dims)) return 0;
        if (GROWTH[op] < 0 && depth < 1 - GROWTH[op]) return 0;
        depth += GROWTH[op];
        if (depth > STACK) return 0;
        i += OPERANDS[op];
    }
    return 0;
}


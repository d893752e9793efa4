import ast, dis, inspect, keyword, tokenize, io


def sample(a, b=2, *args, c, d: int = 4, **kw) -> str:
    "Docs."
    return f"{a}{b}"


print(inspect.signature(sample), inspect.getdoc(sample), inspect.getsource(sample).splitlines()[0])
tree = ast.parse("x = [n * 2 for n in range(10) if n % 2]\nprint(x)")
print([type(node).__name__ for node in tree.body], sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}))


class Double(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.Constant(node.value * 10)


print(ast.unparse(Double().visit(ast.parse("f(1, g(2))"))), ast.literal_eval("{'a': [1, (2, None)]}"))
print([t.string for t in tokenize.generate_tokens(io.StringIO("a+=1 # c").readline) if t.string.strip()], keyword.iskeyword("match"))
exec(compile("y = 6 * 7", "<made>", "exec"))
print(eval("y + 1"), callable(sample), sample.__code__.co_varnames[:2])

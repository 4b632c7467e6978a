# SPDX-License-Identifier: Apache-2.0
"""Holds stacks against the program whose stacks are known (program.py)."""

import ast
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "program.py")
MAX_DEPTH = {"down": 31, "raise_deep": 7, "even": 7, "odd": 6, "__init__": 2}


def marks_of(text):
    """line -> names that it may call"""
    marks = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"# -> (.*)$", line)
        if found:
            marks[number] = {name.strip() for name in found.group(1).split(",")}
    return marks


def lines_of(text):
    """function name -> lines that are its own, the definition's included"""
    lines = {"<module>": set()}
    tree = ast.parse(text)
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            own = set(range(first, node.end_lineno + 1))
            for child in ast.walk(node):
                if child is not node and isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    own -= set(range(child.lineno, child.end_lineno + 1))
            lines.setdefault(node.name, set()).update(own)
            inner |= own
    lines["<module>"] = set(range(0, len(text.splitlines()) + 2))
    return lines


class Text:
    def __init__(self, text):
        self.marks = marks_of(text)
        self.lines = lines_of(text)


class Classifier:
    def __init__(self):
        with open(PROGRAM, encoding="utf-8") as f:
            text = f.read()
        self.program = Text(text)
        scope = {}
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and node.targets[0].id in ("CHURN", "CHURNED"):
                scope[node.targets[0].id] = ast.literal_eval(node.value)
        self.churned = {name: Text(scope["CHURN"].format(name=name)) for name in scope["CHURNED"]}

    def text_of(self, frame, stack, i):
        """The text that a frame of <string> is of; several have a module of the same name."""
        func, path, line = frame
        if path.endswith("program.py"):
            return [self.program]
        if path != "<string>":
            return []
        if func != "<module>":
            return [t for n, t in self.churned.items() if func.startswith(n + "_")]
        return list(self.churned.values())

    def verdict(self, stack):
        """ "", or what is wrong with a stack, root first: "impossible: …" or "line: …" """
        stack = [(func.rsplit(".", 1)[-1], path, line) for func, path, line in stack]
        if not stack or stack[0][0] not in ("<module>", "thread_root") or not stack[0][1].endswith("program.py"):
            return "impossible: no root"
        for name, most in MAX_DEPTH.items():
            if sum(1 for f in stack if f[0] == name) > most:
                return f"impossible: {name} is too deep"
        for i, frame in enumerate(stack):
            callee = stack[i + 1] if i + 1 < len(stack) else None
            wrong = self.wrong(frame, callee, stack, i)
            if wrong:
                return wrong
        return ""

    def wrong(self, frame, callee, stack, i):
        func, path, line = frame
        if func == "<module>" and path == "<string>" and stack[i - 1][0] == "do_exec" and callee and \
                callee[0] == "prepare":
            return "" if line == 1 else f"line: {frame} calls {callee}"
        texts = self.text_of(frame, stack, i)
        if not texts:
            return f"impossible: unknown file of {frame}"
        if all(func not in t.lines and not func.startswith("<") for t in texts):
            return f"impossible: no such function {frame}"
        if callee:
            allowed = [t.marks.get(line, set()) for t in texts]
            if any(callee[0] in names for names in allowed):
                if func.startswith("<") and func != "<module>":
                    return "" if any(func in names for names in allowed) else f"line: {frame}"
                return "" if any(line in t.lines.get(func, ()) for t in texts) else f"line: {frame}"
            calls = any(callee[0] in t.marks[n] for t in texts for n in t.marks
                        if func.startswith("<") or n in t.lines.get(func, ()))
            return f"{'line' if calls else 'impossible'}: {frame} calls {callee}"
        if func.startswith("<"):
            return "" if line >= 0 else f"line: {frame}"
        # 0: an instruction that has no line; the interpreter itself says None.
        return "" if line == 0 or any(line in t.lines.get(func, ()) for t in texts) else f"line: {frame}"

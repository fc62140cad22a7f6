"""Hypothesis strategies for what agents write: JSON of any shape, and JSON that was damaged."""

from hypothesis import strategies as st


def json_values(max_leaves=12):
    """Plain JSON data, strings with lone surrogates and other oddities among it."""
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-(10**30), 10**30)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(), max_size=12)
    )
    return st.recursive(
        scalars,
        lambda children: (
            st.lists(children, max_size=4)
            | st.dictionaries(st.text(st.characters(), max_size=8), children, max_size=4)
        ),
        max_leaves=max_leaves,
    )


@st.composite
def mutated(draw, texts):
    """A text with up to four slices taken out, doubled or replaced by JSON's own characters."""
    text = draw(texts)
    odd = ['"a"', "NaN", "1e999", "```", "\ufeff", "\ud800"]
    pieces = st.sampled_from([*'{}[]",:\\ \n0-.eE', *odd])
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        middle = draw(st.sampled_from(("", text[start:end] * 2)) | pieces)
        text = text[:start] + middle + text[end:]
    return text

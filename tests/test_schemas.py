import pytest

from surefoot.errors import SurefootError
from surefoot.schemas import check_options, defaults_of, parse_number, parse_value


class Method:
    def __init__(self, classes: int, weight: float = 0.1, name: str = "x", size: int | None = None, on: bool = True):
        pass


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("8/255", 8 / 255),
        ("-2.5", -2.5),
        ("7", 7),
        ("1.", 1.0),
        ("abc", "abc"),
        ("1/x", "1/x"),
        ("1/0", "1/0"),
        (3, 3),
    ],
)
def test_numbers_as_people_write_them(text, value):
    assert parse_number(text) == value
    assert type(parse_number(text)) is type(value)


def test_options_get_their_defaults():
    assert defaults_of(Method) == {"weight": 0.1, "name": "x", "size": None, "on": True}
    assert check_options("objective", Method, {"classes": "3", "weight": "8/255"}) == {
        "classes": 3,
        "weight": 8 / 255,
        "name": "x",
        "size": None,
        "on": True,
    }


def test_a_text_option_stays_text():
    assert check_options("objective", Method, {"classes": 3, "name": "8/255"})["name"] == "8/255"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1, "wieght": 2}, r"^Unknown option of objective 'wieght'\. Did you mean 'weight'\?$"),
        ({"classes": 1, "weight": "much"}, r"^objective\.weight: .*number.*, got 'much'\.$"),
        ({"classes": 1, "weight": "1/0.0"}, r"^objective\.weight: .*number.*, got '1/0\.0'\.$"),
        ({"classes": 1.5}, r"^objective\.classes: .*, got 1\.5\.$"),
        ({}, r"^objective\.classes must be given\.$"),
    ],
)
def test_errors_are_one_line(options, message):
    with pytest.raises(SurefootError, match=message):
        check_options("objective", Method, options)


def test_set_values_are_yaml():
    assert parse_value("[1, 2]") == [1, 2]
    assert parse_value("null") is None
    with pytest.raises(SurefootError, match="not a value"):
        parse_value("[1")

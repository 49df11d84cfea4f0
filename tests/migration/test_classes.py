"""Names of classes in stored bytes: found wherever they stand, and changed; nothing else is."""

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.classes import ClassNames, Named, classes_in

HERE = __name__


@dataclass
class Cart:
    """A class of the application, as a dataclass."""

    items: Any


class Price(BaseModel):
    """One of pydantic's."""

    cents: int


class Colour(Enum):
    """An enumeration."""

    RED = "red"


def stored(value: Any) -> bytes:
    """The bytes that LangGraph stores."""
    kind, data = JsonPlusSerializer().dumps_typed(value)
    assert kind == "msgpack"
    return data


def moved(data: bytes, old: str, new: str) -> bytes:
    return ClassNames({f"{HERE}.{old}": new}).renamed("msgpack", data)


NESTED = {
    "alone": Cart(1),
    "in a list": [Cart(1), "text", Cart([2])],
    "in an object of its own": Cart({"inner": Cart(Cart(3))}),
    "in a Send": [Send("node", {"cart": Cart(4)})],
    "in a question": [Interrupt(value=Cart(5), id="x")],
    "in a delta snapshot": _DeltaSnapshot([Cart(6)]),
    "behind much": {"x" * 40: ["y" * 70_000, b"z" * 300, 2**40, -5, 1.5, None, True, Cart(7)]},
    "in a large object": Cart(["w" * 70_000, *range(70_000)]),
}


@pytest.mark.parametrize("name", NESTED)
def test_a_name_is_changed_wherever_it_stands_and_nothing_else(name: str) -> None:
    data = stored(NESTED[name])

    # The same objects under a new name are what LangGraph itself writes for a class of that name.
    there = ClassNames({f"{HERE}.Cart": "shop.basket.Basket"}).renamed("msgpack", data)

    assert there is not data
    before, after = list(classes_in("msgpack", data)), list(classes_in("msgpack", there))
    assert [each for each in after if each.name == "Cart"] == []
    assert [Named(HERE, "Cart") if e.name == "Basket" else e for e in after] == before
    back = ClassNames({"shop.basket.Basket": f"{HERE}.Cart"}).renamed("msgpack", there)
    assert back == data


def test_an_object_within_a_message_is_renamed() -> None:
    data = stored([HumanMessage("hi", additional_kwargs={"colour": Colour.RED})])
    named = [each.name for each in classes_in("msgpack", moved(data, "Colour", "shop.Paint"))]
    assert named == ["HumanMessage", "Paint"]


def test_what_is_written_is_what_langgraph_writes_for_the_new_class() -> None:
    old, new = type("Old", (Cart,), {}), type("Newer", (Cart,), {})
    old.__module__, new.__module__ = "shop.models", "shop.more.cart"
    for wrap in (
        lambda c: c(1),
        lambda c: [Send("n", c({"k": c(2)}))],
        lambda c: _DeltaSnapshot([c(3)]),
    ):
        renamed = ClassNames({"shop.models.Old": "shop.more.cart.Newer"})
        assert renamed.renamed("msgpack", stored(wrap(old))) == stored(wrap(new))


def test_every_form_of_an_object_is_found() -> None:
    value = [
        Cart(1),
        Price(cents=2),
        Colour.RED,
        {1, 2},
        uuid.UUID(int=1),
        Decimal("1.5"),
        datetime(2026, 3, 1, tzinfo=UTC),
        AIMessage("hi"),
    ]
    found = [(each.module, each.name, each.method) for each in classes_in("msgpack", stored(value))]
    assert found == [
        (HERE, "Cart", None),
        (HERE, "Price", None),
        (HERE, "Colour", None),
        ("builtins", "set", None),
        ("uuid", "UUID", None),
        ("decimal", "Decimal", None),
        ("datetime", "datetime", "fromisoformat"),
        ("langchain_core.messages.ai", "AIMessage", None),
    ]


def test_another_class_whose_name_only_begins_so_stays() -> None:
    data = stored([Price(cents=1), {"text": f"{HERE} Cart"}])
    assert moved(data, "Cart", "shop.Cart") is data


def test_two_classes_may_change_their_names() -> None:
    data = stored([Cart(1), Price(cents=1)])
    swapped = ClassNames({f"{HERE}.Cart": f"{HERE}.Price", f"{HERE}.Price": f"{HERE}.Cart"})
    assert [each.name for each in classes_in("msgpack", swapped.renamed("msgpack", data))] == [
        "Price",
        "Cart",
    ]


def test_json_keeps_every_other_byte() -> None:
    text = (
        b'{ "a" : 1.50, "said": "\\"id\\": [\\"shop\\", \\"Cart\\"]",\n'
        b' "x": {"lc":2,"type":"constructor","id":["shop", "models" ,"Cart"],"kwargs":{"n": 1e3}}}'
    )
    names = ClassNames({"shop.models.Cart": "store.Basket"})
    assert names.renamed("json", text) == text.replace(
        b'["shop", "models" ,"Cart"]', b'["store","Basket"]'
    )
    assert list(classes_in("json", text)) == [Named("shop.models", "Cart", None, "json-2")]


def test_json_that_only_looks_so_is_left_to_a_person() -> None:
    text = (
        b'[{"lc":1,"type":"constructor","id":["shop","Cart"],"kwargs":{}},{"id":["shop","Cart"]}]'
    )
    with pytest.raises(NotCarried):
        ClassNames({"shop.Cart": "shop.Basket"}).renamed("json", text)


@pytest.mark.parametrize("data", [b"\xc7\xff\x05shop Cart", b"\xdb\xff\xff\xff\xffshop Cart"])
def test_bytes_that_are_cut_off_are_unreadable(data: bytes) -> None:
    with pytest.raises(Unreadable):
        ClassNames({"shop.Cart": "shop.Basket"}).renamed("msgpack", data)


def test_a_pickle_that_may_name_the_class_is_not_opened() -> None:
    names = ClassNames({"shop.Cart": "shop.Basket"})
    assert names.renamed("pickle", b"other") == b"other"
    with pytest.raises(Unreadable):
        names.renamed("pickle", b"shop\nCart")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=20)
        | st.dictionaries(st.text() | st.integers(0, 300), inner, max_size=20)
        | st.builds(Cart, inner)
    ),
    max_leaves=30,
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_a_rename_and_its_reverse_give_the_same_bytes(value: Any) -> None:
    data = msgspec.msgpack.encode(["first", msgspec.Raw(stored([value, Cart(value)]))])
    there = ClassNames({f"{HERE}.Cart": "a_much_longer.module.of_that.Basket" * 9}).renamed(
        "msgpack", data
    )
    back = ClassNames({"a_much_longer.module.of_that.Basket" * 9: f"{HERE}.Cart"})
    assert there != data
    assert back.renamed("msgpack", there) == data

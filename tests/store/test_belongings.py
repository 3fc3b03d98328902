"""Every table of both databases says whose its rows are, and what becomes of them when a person leaves."""

from typing import Any

from tests.store.town import tables_of

from everloop.ports import Store
from everloop.store.belongings import BELONGINGS, undeclared


async def columns_of(home: Any, table: str) -> set[str]:
    if hasattr(home, "path"):
        return {name for (name,) in await home.rows(f"SELECT name FROM pragma_table_info('{table}')")}
    return {
        name
        for (name,) in await home.rows(
            f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' "
            "AND table_schema = current_schema()"
        )
    }


async def test_every_table_is_declared(home: Any, store: Store):
    assert undeclared(set(await tables_of(home))) == ""


async def test_a_table_that_nobody_has_declared_breaks_the_build_with_what_to_do(home: Any, store: Store):
    await home.write("CREATE TABLE diaries(owner TEXT, body TEXT)")
    told = undeclared(set(await tables_of(home)))
    assert told.startswith("diaries: nobody has said whose rows these are. Add a line for each to BELONGINGS in ")


async def test_the_columns_that_are_named_are_there_and_what_has_an_owner_is_not_kept(home: Any, store: Store):
    tables = set(await tables_of(home))
    for each in BELONGINGS:
        if each.table in tables:
            columns = await columns_of(home, each.table)
            named = {*each.export, each.names, each.order, *([each.key] if each.erase != "keep" else [])} - {""}
            assert (each.table, named - columns) == (each.table, set())
            assert each.erase != "keep" or "owner" not in columns, each.table


def test_each_table_is_in_an_export_or_says_where_else_it_is_or_why_not():
    assert [each.table for each in BELONGINGS if bool(each.export) == bool(each.instead)] == []


def test_no_secret_is_handed_out_and_no_table_is_declared_twice():
    assert {column for each in BELONGINGS for column in each.export} & {
        "hash",
        "box",
        "page",
        "claim",
        "holder",
    } == set()
    assert len({each.table for each in BELONGINGS}) == len(BELONGINGS)

"""A running tool asks the person: a form of its own, an address to visit, and how far it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import ERRORS_OF_OUR_OWN, picture, shows, watched
from tests.support.axe import serious
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import tool_server
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.anyio

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2, "maxLength": 40},
        "email": {"type": "string", "format": "email", "description": "For the receipt"},
        "pizzas": {
            "type": "integer",
            "title": "How many",
            "minimum": 1,
            "maximum": 9,
            "default": 1,
        },
        "day": {"type": "string", "format": "date", "title": "Day"},
        "size": {
            "oneOf": [{"const": "m", "title": "Medium (30 cm)"}, {"const": "l", "title": "Large"}],
            "title": "Size",
            "default": "m",
        },
        "toppings": {
            "type": "array",
            "title": "Toppings",
            "items": {"enum": ["basil", "olives", "onions", "salami"]},
            "default": ["basil"],
            "maxItems": 3,
        },
        "cheese": {"type": "boolean", "title": "Extra cheese"},
        "voucher": {"type": "string", "title": "Voucher key"},
        "extra": {"type": "object", "title": "Anything else"},
    },
    "required": ["name", "pizzas", "size"],
}
FORM: JsonObject = {
    "mode": "form",
    "server": "pizzeria",
    "message": "What would you like?\n<b>Tell us</b> https://evil.example",
    "schema": SCHEMA,
}
VISIT: JsonObject = {
    "mode": "url",
    "server": "bank",
    "message": "Sign in at our page, then come back.",
    "url": "https://xn--bnk-qla.example:8443/pay?order=17&next=https://bank.example/",
}


@dataclass
class Kitchen:
    """A tool that asks all `requests` at once; its context, for more."""

    requests: list[JsonObject]
    contexts: list[ToolContext] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)

    def tools(self, keep: object) -> list[Tool]:
        async def handle(arguments: JsonObject, context: ToolContext) -> ToolOutput:
            self.contexts.append(context)
            for request in self.requests:
                answer = await context.ask(request)
                self.answers.append((answer.action, answer.content))
            return ToolOutput.of("served")

        allowed = PermissionLevel.ALLOW
        return [Tool("order", "Orders.", {"type": "object"}, handle, permission=allowed)]


@asynccontextmanager
async def kitchen(
    chromium: Browser, *requests: JsonObject, **options: Any
) -> AsyncIterator[tuple[Kitchen, Page]]:
    """A chat whose tool asks, on its page."""
    made = Kitchen(list(requests))
    provider = ScriptedProvider(calls(("order", {})), says("Enjoy."))
    async with (
        tool_server(provider, made.tools) as server,
        watched(chromium, server.address, **options) as (context, complaints),
    ):
        complaints.allow(ERRORS_OF_OUR_OWN)
        chat = await server.new_chat()
        run_id = await server.send(chat, "I am hungry")
        await server.wait_for(run_id, "input_required")
        page = await context.new_page()
        await page.goto(f"{server.address}/chats/{chat}")
        await expect(page.locator(".ask-card")).to_be_visible()
        yield made, page


async def test_a_form_is_filled_in_put_right_and_sent(chromium: Browser) -> None:
    async with kitchen(chromium, FORM) as (made, page):
        await expect(page.locator(".status")).to_contain_text("Needs your answer: order")
        card = page.locator(".ask-card")
        await expect(card.locator("h2")).to_have_text("pizzeria asks you")
        # The message is text, and nothing in it is a link.
        await expect(card.locator(".ask-words")).to_contain_text("<b>Tell us</b>")
        assert await card.locator("a").count() == 0
        await expect(card.get_by_label("How many")).to_have_value("1")
        await expect(card.get_by_label("basil")).to_be_checked()
        await expect(card.locator(".warn")).to_contain_text("looks like a secret")
        assert await serious(page) == []
        # What is typed stays through frames of the same call.
        await card.get_by_label("Your name").fill("A")
        await card.get_by_label("How many").fill("eleven")
        await card.get_by_label("olives").check()
        await card.get_by_label("Size").select_option("Large")
        made.contexts[0].progress(3, 10, "Kneading")
        await expect(page.locator(".progress")).to_contain_text("30 %, Kneading")
        assert await page.locator("progress").get_attribute("value") == "3"
        assert await serious(page) == []
        await expect(card.get_by_label("Your name")).to_have_value("A")
        await expect(card.get_by_label("olives")).to_be_checked()
        await card.get_by_role("button", name="Send").click()
        await expect(card.locator(".ask-field .error")).to_have_count(2)
        faults = card.locator(".ask-field", has=page.locator(".error"))
        await expect(faults.nth(0)).to_contain_text("There is 1.")
        await expect(faults.nth(1)).to_contain_text("It has to be a whole number.")
        await expect(card.get_by_label("How many")).to_have_value("eleven")
        assert await serious(page) == []
        await expect(card.get_by_role("alert")).to_contain_text("Your name, How many")
        await card.get_by_role("alert").get_by_role("link", name="Your name").click()
        await expect(card.get_by_label("Your name")).to_be_in_viewport()
        await picture(page, "input-faults")
        # An error stays through a frame too, and goes when its field is right.
        made.contexts[0].progress(5, 10, "Baking")
        await expect(page.locator(".progress")).to_contain_text("50 %")
        await expect(card.locator(".ask-field .error")).to_have_count(2)
        await card.get_by_label("How many").fill("2")
        await card.get_by_role("button", name="Send").click()
        await expect(card.locator(".ask-field .error")).to_have_count(1)
        await card.get_by_label("Your name").fill("Ada")
        await card.get_by_role("button", name="Send").click()
        await shows(page, "idle")
        assert made.answers == [
            (
                "accept",
                {
                    "name": "Ada",
                    "pizzas": 2,
                    "size": "l",
                    "toppings": ["basil", "olives"],
                    "cheese": False,
                },
            )
        ]
        await expect(card).to_have_count(0)
        await expect(page.locator("progress")).to_have_count(0)
        await page.locator(".call summary").click()
        await expect(page.locator(".call-body")).to_contain_text("You answered what it asked.")


@pytest.mark.full
async def test_without_script_a_form_comes_back_as_typed_and_may_be_declined(
    chromium: Browser,
) -> None:
    async with kitchen(chromium, FORM, java_script_enabled=False) as (made, page):
        await page.get_by_label("Your name").fill("A")
        await page.get_by_label("How many").fill("99")
        await page.get_by_label("basil").uncheck()
        await page.get_by_label("salami").check()
        await page.get_by_label("Anything else").fill("{")
        await page.locator(".ask-card").get_by_role("button", name="Send").click()
        await expect(page.locator("h1")).to_have_text("Not sent yet")
        await picture(page, "input-faults-plain")
        await expect(page.locator(".ask-field .error")).to_have_count(3)
        await expect(page.get_by_label("Your name")).to_have_value("A")
        await expect(page.get_by_label("How many")).to_have_value("99")
        await expect(page.get_by_label("Anything else")).to_have_value("{")
        await expect(page.get_by_label("salami")).to_be_checked()
        await expect(page.get_by_label("basil")).not_to_be_checked()
        await page.get_by_label("Your name").fill("")
        await page.get_by_role("button", name="Decline").click()
        await page.wait_for_url("**/chats/*")
        assert made.answers == [("decline", None)]


@pytest.mark.full
async def test_an_address_is_shown_whole_and_opened_by_a_click_alone(chromium: Browser) -> None:
    plain = {**VISIT, "url": "http://bank.example/"}
    async with kitchen(chromium, VISIT, plain) as (made, page):
        card = page.locator(".ask-card")
        await expect(card.locator(".address")).to_have_text(str(VISIT["url"]))
        await expect(card.locator(".address b")).to_have_text("xn--bnk-qla.example:8443")
        await expect(card.locator(".warn")).to_contain_text("letters that may look like others")
        link = card.get_by_role("link")
        await expect(link).to_have_attribute("href", str(VISIT["url"]))
        await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
        await expect(link).to_have_attribute("target", "_blank")
        assert await serious(page) == []
        await picture(page, "input-address")
        assert len(page.context.pages) == 1
        await card.get_by_role("button", name="I have done it").click()
        # One that is not safe to open has no link, and cannot have been done.
        await expect(card.locator(".warn")).to_contain_text("not opened from here")
        assert await card.get_by_role("link").count() == 0
        assert await card.get_by_role("button", name="I have done it").count() == 0
        await card.get_by_role("button", name="Cancel").click()
        await shows(page, "idle")
        assert made.answers == [("accept", None), ("cancel", None)]


@pytest.mark.full
async def test_a_form_has_room_everywhere_and_survives_a_reload(chromium: Browser) -> None:
    async with kitchen(chromium, FORM) as (made, page):
        made.contexts[0].progress(3, None, "Kneading the dough with care")
        for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")):
            await page.set_viewport_size({"width": width, "height": 1500})
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            await page.reload()
            await expect(page.locator(".ask-card")).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await serious(page) == []
            await picture(page, f"input-{width}-{scheme}")

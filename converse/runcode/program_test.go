// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/invoker"
)

func TestPrograms(t *testing.T) {
	for _, test := range []struct{ name, program, want, calls string }{
		{"a value", `return 1 + 2`, "3", ""},
		{"the last expression", "x = 4\nx * 2", "8", ""},
		{"a text", `return "a" + "b"`, "ab", ""},
		{"nothing", `pass`, "The program ended without a value. End it with return value.", ""},
		{"JSON", `return {"a": [1, 2.5, None, True, "ü<"], "b": (1,), "c": {}}`, `{"a":[1,2.5,null,true,"ü<"],"b":[1],"c":{}}`, ""},
		{"a call", `return shop__stock(item="tea")`, "shop__stock of tea", `1 shop__stock {"item":"tea"}`},
		{"a call with a dict", `return shop__stock({"item": "tea"})`, "shop__stock of tea", `1 shop__stock {"item":"tea"}`},
		{"a call by name", `return call("shop__stock", {"item": "tea"})`, "shop__stock of tea", `1 shop__stock {"item":"tea"}`},
		{"another letter in the name", `return shop__order_now(item="tea")`, "shop__order-now of tea", `1 shop__order-now {"item":"tea"}`},
		{"spread arguments", `args = {"item": "tea"}
return shop__stock(**args)`, "shop__stock of tea", `1 shop__stock {"item":"tea"}`},
		{"structured output", `l = shop__list()
return [l["items"][1], l["total"] + 1, l["share"] * 2, l["more"], l["ok"]]`, `["milk",3,1,null,true]`, `1 shop__list {}`},
		{"one after the other", `total = 0
for item in shop__list()["items"]:
    total += shop__price(item=item)
return total`, "7", `1 shop__list {} | 2 shop__price {"item":"tea"} | 3 shop__price {"item":"milk"}`},
		{"gather", `prices = gather(lambda i: shop__price(item=i), ["tea", "milk", "a"])
return sum(prices)`, "8", `1.1.1 shop__price {"item":"tea"} 1.2.1 shop__price {"item":"milk"} 1.3.1 shop__price {"item":"a"}`},
		{
			"gather dicts", `return gather(shop__price, [{"item": i} for i in ["tea", "milk"]])`, "[3,4]",
			`1.1.1 shop__price {"item":"tea"} 1.2.1 shop__price {"item":"milk"}`,
		},
		{"gather functions", `return gather([lambda: shop__price(item="tea"), lambda: shop__stock(item="milk")])`, `[3,"shop__stock of milk"]`,
			`1.1.1 shop__price {"item":"tea"} 1.2.1 shop__stock {"item":"milk"}`},
		{"gather of functions with several calls", `
def look(item):
    if shop__price(item=item) < 4:
        return shop__stock(item=item)
    return item
return gather(look, ["tea", "milk"]) + [shop__price(item="x")]`, `["shop__stock of tea","milk",1]`,
			`1.1.1 shop__price {"item":"tea"} 1.2.1 shop__price {"item":"milk"} | 1.1.2 shop__stock {"item":"tea"} | 2 shop__price {"item":"x"}`},
		{"gather in gather", `return gather(lambda a: gather(lambda b: shop__price(item=a + b), ["x", "yy"]), ["", "a"])`, "[[1,2],[2,3]]",
			`1.1.1.1.1 shop__price {"item":"x"} 1.1.1.2.1 shop__price {"item":"yy"} 1.2.1.1.1 shop__price {"item":"ax"} 1.2.1.2.1 shop__price {"item":"ayy"}`},
		{"gather of nothing", `return gather(lambda i: i, [])`, "[]", ""},
		{"an attempt", `value, error = attempt(shop__price, item="ghost")
other, none = attempt(lambda: shop__price(item="tea"))
return [value, error["code"], error["message"], other, none]`, `[null,"NOT_FOUND","There is no ghost.",3,null]`,
			`1 shop__price {"item":"ghost"} | 2 shop__price {"item":"tea"}`},
		{"attempts in gather", `return [v or e["code"] for v, e in gather(lambda i: attempt(shop__price, item=i), ["tea", "ghost"])]`, `[3,"NOT_FOUND"]`,
			`1.1.1 shop__price {"item":"tea"} 1.2.1 shop__price {"item":"ghost"}`},
		{"print", "print(\"a\", 1)\nshop__price(item=\"tea\")\nprint(\"b\")\nreturn 2", "2\nPrinted:\na 1\nb\n", `1 shop__price {"item":"tea"}`},
		{"while, break and continue", `n, seen = 0, []
while True:
    n += 1
    if n == 2:
        continue
    if n > 4:
        break
    seen.append(n)
return seen`, "[1,3,4]", ""},
		{"changes in place", `d, l = {"a": 1, "l": [1]}, [1]
alias = l
l += [2]
l *= 2
d["a"] += 2
d["l"] += (3,)
d |= {"b": 4}
m = [[1], 5]
m[-1] -= 1
m[0] += [2]
return [alias, l, d, m]`, `[[1,2],[1,2,1,2],{"a":3,"l":[1,3],"b":4},[[1,2],4]]`, ""},
		{"strings", `s = "a,b,,c"
return [s.split(","), "-".join(["x", "y"]), s.replace(",", ";"), s.upper(), "%s=%d %r" % ("k", 3, "v"), "{}-{x}".format(1, x=2), s[1:3], s[::-1], "b" in s, s.title().strip()]`,
			`[["a","b","","c"],"x-y","a;b;;c","A,B,,C","k=3 \"v\"","1-2",",b","c,,b,a",true,"A,B,,C"]`, ""},
		{"lists and dicts", `l = [3, 1, 2]
l.extend([5]); l.insert(0, 9); l.remove(1)
d = {"x": 1}
d.update([("y", 2)], z=3)
a, (b, c) = 1, (2, 3)
return [l, sorted(l), l.index(5), l.pop(), d, d.get("q", 0), d.keys(), d.items(), [k for k in d if d[k] > 1], {v: k for k, v in d.items()}[2], a, b, c, l[1:], (1, 2) in {(1, 2): 0}]`,
			`[[9,3,2],[2,3,5,9],3,5,{"x":1,"y":2,"z":3},0,["x","y","z"],[["x",1],["y",2],["z",3]],["y","z"],"y",1,2,3,[3,2],true]`, ""},
		{"numbers", `return [7 // 2, 7 % 4, 7 / 2, 2 * 3.5, 1 << 10, 6 & 3, 6 | 1, 6 ^ 3, ~5, -3, 10 > 3 and 1 or 2, min(3, 1), max([1, 4]),` +
			` abs(-2), int("12"), float("1.5"), str(1.0), 10 >> 1]`,
			`[3,3,3.5,7,1024,2,7,5,-6,-3,1,1,4,2,12,1.5,"1.0",5]`, ""},
		{"functions", `
def f(a, b=2, *args, **kwargs):
    return [a, b, args, kwargs]
return [f(1), f(1, 3, 4, x=5), f(*[1, 2], **{"y": 6}), (lambda x, y=1: x + y)(2)]`, `[[1,2,[],{}],[1,3,[4],{"x":5}],[1,2,[],{"y":6}],3]`, ""},
		{"JSON by hand", `return json.decode(json.encode({"a": [1, 12345678901234567890]}))["a"][1] + json.loads("1")`, "12345678901234567891", ""},
		{"helpers", `return [list(enumerate(["a"])), zip([1], [2]), reversed([1, 2]), any([0, 1]), all([]), len("abc"), type(1), repr("a"), ` +
			`bool([]), list(range(3)), ord("a"), chr(98), tuple([1]), dict(a=1)]`,
			`[[[0,"a"]],[[1,2]],[2,1],true,true,3,"int","\"a\"",false,[0,1,2],97,"b",[1],{"a":1}]`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := shop()
			got, failure := r.run(t, nil, test.program)
			if failure != nil {
				t.Fatal(failure)
			}
			if calls := strings.Join(r.log, " "); got != test.want || calls != test.calls {
				t.Errorf("got %s\nwant %s\ncalls %s\nwant  %s", got, test.want, calls, test.calls)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct{ name, program, want string }{
		{"an unknown tool", "x = 1\nreturn shop__prize(item=\"tea\")", "Line 2, column 8: undefined: shop__prize (did you mean shop__price?)\nOnly the tools"},
		{
			"an unknown argument", `return shop__price(item="tea", curency="EUR")`,
			"Line 1, column 19: shop__price has no argument curency; did you mean currency?",
		},
		{"a missing argument", `return shop__price(currency="EUR")`, "shop__price lacks the argument item; its arguments are: currency?, item"},
		{"arguments by position", `return shop__price("tea")`, "Line 1, column 19: shop__price takes its arguments by name: currency?, item"},
		{"no JSON", `return shop__list(f=len)`, "Line 1, column 18: a builtin_function_or_method has no JSON form"},
		{"a key that is a number", `return shop__list({1: 2})`, "a dict with a key that is a int has no JSON form: use str(key)"},
		{"a failure", "x = 1\nreturn shop__price(item=\"ghost\")", "Line 2, column 19: shop__price failed: NOT_FOUND: There is no ghost.\n" +
			"To go on after a failed call, write value, error = attempt(shop__price, …).\nThe calls that the program made before are not undone."},
		{"a failure in gather", `return gather(shop__price, [{"item": "tea"}, {"item": "ghost"}])`, "Line 1, column 14: shop__price failed: NOT_FOUND"},
		{
			"a failure in a function", "def f():\n    return shop__price(item=\"ghost\")\nreturn [f() for i in range(2)]",
			"Line 2, column 23: shop__price failed",
		},
		{"division by zero", "a = 0\nreturn 1 / a", "Line 2, column 10: floating-point division by zero"},
		{"an index", "l = [1]\nreturn l[3]", "Line 2, column 9: list index 3 out of range"},
		{"a key", "return {\"a\": 1}[\"b\"]", "key \"b\" not in dict"},
		{"an attribute of a dict", `return {"a": 1}.a`, `Line 1, column 16: dict has no .a; write ["a"] for an entry`},
		{"a method", `return "a".uper()`, "Line 1, column 11: string has no .uper; did you mean .upper?"},
		{"types", `return "a" + 1`, "Line 1, column 12: unknown binary op: string + int"},
		{"import", "import os", "Starlark has no import"},
		{"class", "class A:\n  pass", "Starlark has no classes"},
		{"try", "try:\n  pass\nexcept:\n  pass", "Starlark has no try"},
		{"an f-string", `return f"{1}"`, "Starlark has no f-strings"},
		{"power", `return 2 ** 3`, "There is no operator **"},
		{"a set", `return set([1])`, "set is not available"},
		{"set braces", `return {x for x in [1]}`, "Line 1, column 14: got for, want ':'"},
		{
			"changes of what gather shares", "out = []\ngather(lambda i: out.append(i), [1])\nreturn out",
			"Line 2, column 28: append: cannot append to frozen list\nFunctions that gather runs",
		},
		{"changes through a method", "out = []\nadd = out.append\ngather(lambda i: add(i), [1])\nreturn out", "cannot append to frozen list"},
		{"fail", `fail("it", "is", 1)`, "Line 1, column 5: fail: it is 1"},
		{"an empty program", "  \n# nothing\n", "the program is empty"},
		{"syntax", "return (1,\n", "got end of file"},
		{"a function without JSON as the value", "return len", "the value that the program returns: a builtin_function_or_method has no JSON form"},
		{"what is printed before", "print(\"here\")\nfail(\"x\")", "Printed:\nhere"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := shop()
			got, failure := r.run(t, nil, test.program)
			if failure == nil {
				t.Fatalf("got %s", got)
			}
			text := failure.Message
			if len(failure.Content) > 0 {
				text = texts(failure.Content)
			}
			if !strings.Contains(text, test.want) {
				t.Errorf("got %s\nwant %s", text, test.want)
			}
		})
	}
}

func texts(contents []canister.Content) string {
	var all []string
	for _, c := range contents {
		all = append(all, c.(canister.TextContent).Text)
	}
	return strings.Join(all, "\n")
}

// A program that has failed makes no further call, even if a function of gather wants one.
func TestAFailureStopsTheCallsOfGather(t *testing.T) {
	r := shop()
	_, failure := r.run(t, nil, `
def order(item):
    shop__stock(item=item)
    return shop__order_now(item=item)
return gather(order, ["tea", "ghost", "milk"])`)
	if failure == nil || strings.Contains(strings.Join(r.log, " "), "order-now") {
		t.Errorf("got %v, calls %q", failure, r.log)
	}
}

// What a program calls is the same in each run; another program with the same history is
// refused.
func TestAReplayThatDiffers(t *testing.T) {
	r := shop()
	tea := `return shop__price(item="tea")`
	if _, failure := r.run(t, nil, tea); failure != nil {
		t.Fatal(failure)
	}
	tool := toolOf(t, nil)
	_, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: []byte(`{"program":"return shop__price(item='milk')"}`), Tools: r})
	if failure := invoker.AsFailure(err); failure == nil || !strings.Contains(failure.Message, "differs") || len(r.wanted) > 0 {
		t.Errorf("got %v, wants %v", err, r.wanted)
	}
	if _, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: []byte(`{"program":"return 1"}`)}); invoker.AsFailure(err).Code != invoker.Unavailable {
		t.Errorf("without a conversation: %v", err)
	}
}

// The function of a tool never calls another one whose name is alike.
func TestNamesThatAreAlike(t *testing.T) {
	r := shop()
	for _, name := range []string{"srv__delete-draft", "srv__delete_draft", "srv__a-b", "srv__a.b"} {
		r.offered = append(r.offered, &invoker.Definition{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	if got, failure := r.run(t, nil, "return srv__delete_draft(id=1)"); failure != nil || got != "srv__delete_draft of " {
		t.Errorf("got %s, %v", got, failure)
	}
	r.log = nil
	_, failure := r.run(t, nil, "return srv__a_b()")
	if want := `srv__a_b can be "srv__a-b" or "srv__a.b": write call("srv__a-b", {…}) or call("srv__a.b", {…})`; failure == nil || r.log != nil ||
		!strings.Contains(failure.Message, want) {
		t.Errorf("got %v, calls %q", failure, r.log)
	}
	for _, program := range []string{`return call("srv__a.b", {"item": "ghost"})`, `return call("srv__delete-draft", {"item": "ghost"})`} {
		name := strings.Split(program, `"`)[1]
		if _, failure := r.run(t, nil, program); failure == nil || !strings.Contains(failure.Message, `attempt(call, "`+name+`", …)`) {
			t.Errorf("%s: got %v", program, failure)
		}
	}
}

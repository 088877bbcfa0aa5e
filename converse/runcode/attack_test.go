// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"bytes"
	"hash/fnv"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/runcode"
)

// The bounds of an attack. Allocated is everything that was allocated until the end, so that
// the memory at any time is less.
const (
	mostAllocated = 256 << 20
	mostTime      = time.Minute // of a busy machine with the race detector; alone it is below a second
)

// The beginnings of some attacks.
const (
	deep  = "x = []\nfor i in range(100000):\n    x = [x]\n"
	wide  = "x = (1,)\nfor i in range(60):\n    x = (x, x)\n"
	tree  = "x = [0] * 1000\nfor i in range(8):\n    x = [x] * 1000\n"
	twice = "s = \"x\" * 500000\n"
	loop  = "x = []\nx.append(x)\n"

	alike  = "pairs = zip(range(0, 60000 << 32, 1 << 32), range(60000))\n"
	halves = "a = {i << 32: 1 for i in range(2500)}\nb = {-i << 32: 1 for i in range(2500)}\n"
)

// hashed returns the beginning of a program that makes keys whose hashes have the same end.
func hashed() string {
	const start, end = 2166136261, 1<<14 - 1 // of FNV-1a, with which package starlark hashes short strings
	var blocks []string                      // each leads from the start to the same end
	for i := range 90 * 90 * 90 {
		block := []byte{byte('#' + i%90), byte('#' + i/90%90), byte('#' + i/90/90)}
		hash := fnv.New32a()
		hash.Write(block)
		if hash.Sum32()&end == start&end && !bytes.ContainsAny(block, `\%`) && len(blocks) < 30 {
			blocks = append(blocks, strconv.Quote(string(block)))
		}
	}
	return "b = [" + strings.Join(blocks, ",") + "]\nkeys = [x + y + z for x in b for y in b for z in b]\n"
}

type attack struct{ name, program, want string }

// attacks are programs that try to exceed a bound, with a part of the error that they get.
var attacks = []attack{
	// time
	{"an endless loop", "while True:\n    pass", "steps"},
	{"a loop over a huge range", "for i in range(1000000000000):\n    pass", "steps"},
	{"loops in loops", "for i in range(100000):\n    for j in range(100000):\n        for k in range(100000):\n            pass", "steps"},
	{"a comprehension", "return [1 for i in range(100000) for j in range(100000)]", "steps"},
	{"a loop of calls that do nothing", "def f():\n    return 1\nwhile True:\n    f()", "steps"},
	{"a sum over a huge range", "return sum(range(1000000000))", "too many for one operation"},
	{"the maximum of a huge range", "return max(range(1000000000))", "too many for one operation"},
	{"a sorted huge range", "return sorted(range(1000000000))", "too many for one operation"},
	{"comparisons of wide lists", tree + "y = [0] * 1000\nfor i in range(8):\n    y = [y] * 1000\nreturn x == y", "too large for one operation"},
	{"keys that are wide tuples", wide + "return {x: 1}", "nested more than 32 levels"},
	{"membership in a long list, often", "l = list(range(90000))\nwhile True:\n    -1 in l", "steps"},
	{"a long text that is searched often", twice + "while True:\n    \"yy\" in s", "steps"},
	{"a list that is sorted often", "l = list(range(50000))\nwhile True:\n    sorted(l)", "steps"},
	{"a list whose front is removed often", "l = list(range(90000))\nwhile True:\n    l.insert(0, l.pop())", "steps"},
	{"letters that are stripped", `return ("\uFFFD" * 340000).lstrip("é" * 500000 + "\uFFFD")`, "too many to strip"},
	{"letters that are stripped often", "s = \"é\" * 40000\nwhile True:\n    s.strip(\"àè\" * 100 + \"é\")", "steps"},
	{"keys with one hash", alike + "return dict(pairs)", "too much alike"},
	{"keys with one hash in update", alike + "d = {}\nd.update(pairs)", "too much alike"},
	{"keys with one hash, in dicts", "return dict([{i << 32: 1, 0: 1} for i in range(1, 20000)])", "too much alike"},
	{"long keys with one hash", "return dict([((0,) * 60 + (i << 32,), 1) for i in range(2500)])", "too much alike"},
	{"keys in one part of the table", "return dict(zip(range(0, 60000 << 16, 1 << 16), range(60000)))", "too much alike"},
	{"dicts with keys of one hash", halves + "return a | b", "too much alike"},
	{"a dict that gets keys of one hash", halves + "a |= b", "too much alike"},
	{"JSON with keys of one hash", hashed() + "return json.decode(\"{\" + \",\".join(['\"' + k + '\":1' for k in keys]) + \"}\")", "too much alike"},

	// memory
	{"a list that grows", "l = []\nwhile True:\n    l.append(l)", "steps"},
	{"a list of a huge range", "return list(range(1000000000))", "too many for one operation"},
	{"a text that doubles", "s = \"x\"\nwhile True:\n    s += s", "too long"},
	{"a text times a million", "return (\"x\" * 1000000) * 1000000", "too long"},
	{"a text times a huge number", "return \"x\" * (1 << 62)", "too long"},
	{"a list times a huge number", "return [0] * (1 << 40)", "too many for one operation"},
	{"a list that doubles", "l = [0]\nwhile True:\n    l += l", "too many for one operation"},
	{"a tuple that doubles", "l = (0,)\nwhile True:\n    l = l + l", "too many for one operation"},
	{"many long texts", "l = []\nwhile True:\n    l.append(\"x\" * 100000)", "MB"},
	{"many dicts", "l = []\nwhile True:\n    l.append({})", "steps"},
	{"many slices", "l = list(range(90000))\nk = []\nwhile True:\n    k.append(l[1:])", "MB"},
	{"a text of a tree of lists", tree + "return str(x)", "too large for one operation"},
	{"a text of a list in itself", loop + "return repr(x)", "contains itself"},
	{"a format that repeats", twice + "return (\"{0}\" * 10000).format(s)", "too long"},
	{"a format with % that repeats", twice + "return (\"%(a)s\" * 10000) % {\"a\": s}", "too long"},
	{"a join", twice + "return s.join([s] * 1000)", "too long"},
	{"a replacement", twice + "return s.replace(\"x\", s)", "too long"},
	{"a split into many", "s = \",\" * 1000000\nl = []\nwhile True:\n    l.append(s.split(\",\"))", "MB"},
	{"upper case of a long text, often", "s = \"x\" * 200000\nl = []\nwhile True:\n    l.append(s.upper())", "MB"},
	{"JSON that is large in memory", "s = \"[\" + \"{},\" * 300000 + \"0]\"\nreturn json.decode(s)", "MB"},
	{"arguments from a huge range", "def f(*args):\n    pass\nf(*range(1000000000))", "arguments are too many"},
	{"zip", "l = list(range(90000))\nk = []\nwhile True:\n    k.append(zip(l, l, l))", "MB"},
	{"a value of a tree of lists", tree + "return x", "too large for one operation"},

	// recursion and nesting
	{"a function that calls itself", "def f():\n    return f()\nf()", "called recursively"},
	{"a function that calls itself through another", "def f(g):\n    return g(g)\nf(f)", "called recursively"},
	{"recursion through sorted", "def f(x):\n    return sorted([1], key=f)\nf(1)", "called recursively"},
	{"a deep list", deep + "return str(x)", "nested more than 32 levels"},
	{"a deep list as a value", deep + "return x", "nested more than 32 levels"},
	{"a deep list that is compared", deep + "return x == [x]", "nested more than 32 levels"},
	{"a function that refers to itself in gather", "def f(i):\n    return [f]\nreturn gather(f, [1])", "contains itself"},
	{"a wide tuple in gather", wide + "return gather(lambda i: 1, [x])", "nested more than 32 levels"},
	{"deep JSON", "return json.decode(\"[\" * 100000)", "nested more than 32 levels"},
	{"deep parentheses", "return " + strings.Repeat("(", 16000) + "1" + strings.Repeat(")", 16000), ""},
	{"a long chain of operators", "return " + strings.Repeat("not ", 8000) + "1", ""},
	{"deep brackets", strings.Repeat("[", 32000), "excessive nesting"},

	// numbers
	{"a number that doubles", "n = 2\nwhile True:\n    n *= n", "bits"},
	{"a shift by a huge number", "return 1 << (1 << 40)", "bits"},
	{"shifts that add up", "n = 1\nwhile True:\n    n = n << 500", "bits"},
	{"a literal of many digits", "return " + strings.Repeat("9", 30000), "bits"},
	{"a text of many digits", "return int(\"9\" * 100000)", "bits"},
	{"JSON of many digits", "return json.decode(\"9\" * 100000)", "bits"},

	// attributes and names
	{"the operations of the interpreter", "return $key(1)", "unexpected input character"},
	{"getattr", "return getattr(\"\", \"elems\")", "not available"},
	{"dir", "return dir([])", "not available"},
	{"hash", "return hash(\"a\")", "not available"},
	{"a class of a value", "return \"\".__class__", "has no .__class__"},
	{"an attribute of a function", "return len.__self__", "has no .__self__"},
	{"an attribute that is set", "json.decode = 1", "cannot be assigned to"},
	{"load", "load(\"//etc\", \"passwd\")", "load"},
	{"a file", "return open(\"/etc/passwd\")", "undefined: open"},
	{"exec", "return exec(\"1\")", "undefined: exec"},

	// tools
	{"a tool that was not offered", "return secret__read(path=\"a\")", "undefined: secret__read"},
	{"run_code", "return code__run_code(program=\"return 1\")", "undefined: code__run_code"},
	{"run_code by its name", "return call(\"code__run_code\", {\"program\": \"return 1\"})", "cannot be called by a program"},
	{"a tool under another name", "f = call\nreturn f(\"code__\" + \"run_code\", {})", "cannot be called by a program"},
	{"calls without end", "n = 0\nwhile True:\n    attempt(shop__price, item=str(n))\n    n += 1", "more than 200 calls"},
	{"calls without end in gather", "return gather(lambda i: shop__price(item=str(i)), range(100000))", "more than 200 calls"},
	{"limits that are caught", "while True:\n    attempt(lambda: \"x\" * 10000000)", "too long"},
	{"long arguments", twice + "return shop__list(a=s, b=s, c=s)", "too long"},
	{"a long name", "return call(\"x\" * 1000)", "with a name of 1000 bytes"},
	{"a program that is too long", strings.Repeat("#", 33<<10), "at most 32768 are allowed"},
	{"a text that is not UTF-8", "fail(\"\\xff\")", ""},
}

// An operation is not interrupted, so none may take long.
func TestTimeHolds(t *testing.T) {
	for _, attack := range attacks[:slices.IndexFunc(attacks, func(a attack) bool { return a.name == "a list that grows" })] {
		t.Run(attack.name, func(t *testing.T) {
			began := time.Now()
			if got, failure := shop().run(t, &runcode.Options{Time: 100 * time.Millisecond}, attack.program); failure == nil {
				t.Errorf("got %.100s", got)
			}
			if took := time.Since(began); took > 20*time.Second { // on a busy machine; it took minutes
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestAttacks(t *testing.T) {
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			r := shop()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			got, failure := r.run(t, &runcode.Options{Time: mostTime}, attack.program)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			if failure == nil && attack.want != "" {
				t.Fatalf("got %.100s", got)
			}
			if failure != nil && (!strings.Contains(failure.Message, attack.want) || len(failure.Message) > 8<<10) {
				t.Errorf("got %.1000s\nwant %s", failure.Message, attack.want)
			}
			t.Logf("%v, %d MB, %d runs", took, allocated>>20, r.runs)
			if limit := uint64(r.runs) * mostAllocated; allocated > limit || took > mostTime {
				t.Errorf("it took %v and %d MB", took, allocated>>20)
			}
		})
	}
}

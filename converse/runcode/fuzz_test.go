// SPDX-License-Identifier: Apache-2.0

package runcode_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/consort-go/consort/converse/runcode"
)

// FuzzProgram runs programs with small bounds: none panics, none exceeds the bounds, and each
// does the same when it runs again.
func FuzzProgram(f *testing.F) {
	for _, attack := range attacks {
		if len(attack.program) < 2000 {
			f.Add(attack.program)
		}
	}
	for _, program := range []string{
		"return [shop__price(item=i) for i in shop__list()[\"items\"]]",
		"a, b = gather([lambda: shop__stock(item=\"tea\"), lambda: shop__price(item=\"milk\")])\nreturn {\"a\": a, \"b\": b % 7}",
		"value, error = attempt(shop__stock, item=\"ghost\")\nif error and error[\"code\"] == \"NOT_FOUND\":\n    return error\nreturn value",
		"def f(x, *args, y=2, **more):\n    return x[1:-1:2] + \"{} {y}\".format(args, y=y)\nprint(f(\"abcdef\", 1))\nreturn json.decode(json.encode({\"k\": [1.5, None, True]}))",
		"d = {}\nd[\"a\"] = d.setdefault(\"b\", 1)\nd |= {\"c\": 1 << 3 ^ 5 & ~2}\nfor k, v in sorted(d.items(), key=lambda p: p[0], reverse=True):\n    d[k] += v // 2 if k not in \"b\" else -v\nreturn d",
	} {
		f.Add(program)
	}
	options := &runcode.Options{Steps: 20_000, Bytes: 2 << 20, Time: mostTime, Calls: 5}
	f.Fuzz(func(t *testing.T, program string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		first := shop()
		got, failure := first.run(t, options, program)
		runtime.ReadMemStats(&after)
		if took := time.Since(began); took > mostTime/2 {
			t.Errorf("it took %v", took)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(first.runs)*(64<<20) {
			t.Errorf("it allocated %d MB in %d runs", allocated>>20, first.runs)
		}
		again := shop()
		same, failed := again.run(t, options, program)
		if same != got || (failure == nil) != (failed == nil) || failure != nil && failure.Message != failed.Message || !slices.Equal(first.log, again.log) {
			t.Errorf("it returned %q, %v after %q\nand again %q, %v after %q", got, failure, first.log, same, failed, again.log)
		}
	})
}

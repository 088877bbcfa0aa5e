// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/consort-go/consort/invoker"
)

func TestReporter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		begun := time.Now()
		r := Begin(&invoker.Call{Progress: func(p invoker.Progress) {
			got = append(got, fmt.Sprint(time.Since(begun), " ", p.Done, " ", p.Message))
		}})
		time.Sleep(12 * time.Second)
		r.Report("one", nil)
		time.Sleep(6 * time.Second)
		r.End()
		r.End()
		r.Report("late", nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"5s 1 at work", "10s 2 at work", "12s 3 one", "17s 4 at work"}; !slices.Equal(got, want) {
			t.Errorf("the reports are %q, want %q", got, want)
		}
		for _, call := range []*invoker.Call{nil, {}} { // nobody listens
			r := Begin(call)
			r.Report("one", nil)
			r.End()
		}
	})
}

func TestOf(t *testing.T) {
	for want, p := range map[string]invoker.Progress{
		"scan: half": {Done: 1, Total: 2, Message: "half"}, "scan: 1 of 2.5": {Done: 1, Total: 2.5}, "scan: at work": {Done: 3},
	} {
		if got := Of("scan", p); got != want {
			t.Errorf("%+v is %q, want %q", p, got, want)
		}
	}
}

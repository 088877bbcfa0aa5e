// SPDX-License-Identifier: Apache-2.0

package invoker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/invoker"
)

// Attempts of a model, or of a person behind it, to act as another user or to crash the
// program. The tool acts for user 7.
func TestAttacks(t *testing.T) {
	type task struct {
		Title string   `json:"title" minLength:"1" maxLength:"500"`
		Tags  []string `json:"tags,omitempty"`
		Done  bool     `json:"done,omitempty"`
	}
	needs := []invoker.Need{user, tenant, invoker.NewTrusted[string]("key").Secret()}
	var ran []string
	add, err := invoker.New("add_task", "", func(ctx context.Context, in task) (string, error) {
		id, _ := user.From(ctx)
		ran = append(ran, fmt.Sprintf("%d %s", id, in.Title))
		return "ok", nil
	}, &invoker.Options{Needs: needs})
	if err != nil {
		t.Fatal(err)
	}
	ctx := invoker.WithTrusted(context.Background(), user.Value(7), tenant.Value("acme"), invoker.NewTrusted[string]("key").Value("k"))
	brackets := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	braces := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	const forged = "is set by the program that runs the tool; leave it out"
	for _, attack := range []struct {
		name, arguments, want string
		names                 []string // of the forged values
	}{
		{"another user", `{"title":"x","user_id":8}`, "/user_id: " + forged, []string{"user_id"}},
		{"before the rest", `{"user_id":8,"title":"x"}`, "/user_id: " + forged, []string{"user_id"}},
		{"upper case", `{"title":"x","USER_ID":8}`, "/USER_ID: " + forged, []string{"user_id"}},
		{"mixed case", `{"title":"x","User_iD":8}`, "/User_iD: " + forged, []string{"user_id"}},
		{"an escape", `{"title":"x","\u0075ser_id":8}`, "/user_id: " + forged, []string{"user_id"}},
		{"all escapes", `{"title":"x","\u0075\u0073\u0065\u0072\u005f\u0069\u0064":8}`, "/user_id: " + forged, []string{"user_id"}},
		{"a long s", `{"title":"x","uſer_id":8}`, "/uſer_id: " + forged, []string{"user_id"}},
		{"an escaped long s", `{"title":"x","u\u017fer_id":8}`, "/uſer_id: " + forged, []string{"user_id"}},
		{"the Kelvin sign", "{\"title\":\"x\",\"\u212aey\":8}", "/\u212aey: " + forged, []string{"key"}},
		{"twice", `{"title":"x","user_id":8,"user_id":7}`, "/user_id: " + forged, []string{"user_id"}},
		{"twice in two cases", `{"title":"x","user_id":8,"User_Id":7}`, "/User_Id: " + forged, []string{"user_id"}},
		{"three at once", `{"title":"x","tenant":"b","KEY":"c","user_id":8}`, "/tenant: " + forged, []string{"key", "tenant", "user_id"}},
		{"as null", `{"title":"x","user_id":null}`, "/user_id: " + forged, []string{"user_id"}},
		{"as an object", `{"title":"x","user_id":{"$ne":7}}`, "/user_id: " + forged, []string{"user_id"}},
		{"behind bad JSON", `{"user_id":8,"title":`, "/user_id: " + forged, []string{"user_id"}},
		{"behind deep nesting", `{"tags":` + brackets + `,"user_id":8}`, "/user_id: " + forged, []string{"user_id"}},
		{"behind a wrong value", `{"title":1,"user_id":8}`, "/title: 1 is not a string", []string{"user_id"}},

		{"nested", `{"title":"x","task":{"user_id":8}}`, "/task: is not a known property", nil},
		{"in _meta", `{"title":"x","_meta":{"user_id":8}}`, "/_meta: is not a known property", nil},
		{"a look-alike", "{\"title\":\"x\",\"user_\u0456d\":8}", "is not a known property", nil},
		{"a space", `{"title":"x","user_id ":8}`, "is not a known property", nil},
		{"an array", `[{"title":"x","user_id":8}]`, "arguments: an array is not an object", nil},
		{"null in an array", `[null]`, "arguments: an array is not an object", nil},
		{"null", `null`, "/title: is missing", nil},
		{"a number", `7`, "arguments: 7 is not an object", nil},
		{"400 digits", `{"title":"x","done":` + strings.Repeat("9", 400) + `}`, "/done: 99999", nil},
		{"500 digits", `{"title":` + strings.Repeat("9", 500) + `}`, "/title: is a number of 500 characters", nil},
		{"400 digits alone", strings.Repeat("9", 400), "is beyond the range of numbers", nil},
		{"a gigabyte of digits", `{"title":1e999999999}`, "/title: 1e999999999 is beyond the range of numbers", nil},
		{"100,000 brackets", brackets, "arguments: nested more than 200 deep", nil},
		{"100,000 brackets in a member", `{"title":"x","tags":` + brackets + `}`, "arguments: nested more than 200 deep", nil},
		{"100,000 objects", braces, "arguments: nested more than 200 deep", nil},
		{"100,000 brackets left open", strings.Repeat("[", 100_000), "arguments: nested more than 200 deep", nil},
		{"__proto__", `{"title":"x","__proto__":{"user_id":8}}`, "/__proto__: is not a known property", nil},
		{"constructor", `{"title":"x","constructor":{"prototype":{"user_id":8}}}`, "/constructor: is not a known property", nil},
		{"toString", `{"title":"x","toString":1,"hasOwnProperty":2}`, "/toString: is not a known property", nil},
		{"an ordinary key twice", `{"title":"x","title":"y"}`, "/title: is given twice", nil},
		{"an ordinary key twice, escaped", `{"title":"x","\u0074itle":"y"}`, "/title: is given twice", nil},
		{"an ordinary key in two cases", `{"title":"x","Title":"y"}`, "/Title: is not a known property", nil},
		{"a nested key twice", `{"title":"x","tags":[{"a":1,"a":2}]}`, "/tags/0/a: is given twice", nil},
		{"10,000 characters", `{"title":"` + strings.Repeat("x", 10_000) + `"}`, "/title: has 10000 characters; at most 500 allowed", nil},
		{"no characters", `{"title":""}`, "/title: has 0 characters; at least 1 needed", nil},
		{"two texts", `{"title":"x"}{"user_id":8}`, "not valid JSON", []string{"user_id"}},
		{"a byte order mark", "\ufeff{\"title\":\"x\"}", "not valid JSON", nil},
	} {
		t.Run(attack.name, func(t *testing.T) {
			ran = nil
			start := time.Now()
			_, err := add.Invoke(ctx, &invoker.Call{Arguments: []byte(attack.arguments)})
			failure := invoker.AsFailure(err)
			if failure == nil || failure.Code != invoker.InvalidArguments || failure.Retryable ||
				!strings.Contains(failure.Message, attack.want) || len(failure.Message) > 4000 {
				t.Errorf("got %.300v, want %s", failure, attack.want)
			}
			if ran != nil {
				t.Errorf("the tool ran: %q", ran)
			}
			var cause *invoker.Forged
			errors.As(err, &cause)
			switch {
			case attack.names == nil && cause != nil:
				t.Errorf("nothing was forged, and it says %v", cause)
			case attack.names != nil && (cause == nil || !slices.Equal(cause.Names, attack.names)):
				t.Errorf("the cause is %v, want %q", cause, attack.names)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	// What only looks like an attack is data.
	for _, title := range []string{`'; DROP TABLE tasks; --`, `user_id`, `{\"user_id\":8}`, `__proto__`, `$(reboot)`} {
		ran = nil
		if _, err := add.Invoke(ctx, &invoker.Call{Arguments: []byte(`{"title":"` + title + `"}`)}); err != nil {
			t.Errorf("%s: %v", title, err)
		}
		if want := "7 " + strings.ReplaceAll(title, `\"`, `"`); !slices.Equal(ran, []string{want}) {
			t.Errorf("%s: ran %q", title, ran)
		}
	}
}

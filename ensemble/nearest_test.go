// SPDX-License-Identifier: Apache-2.0

package ensemble_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/invoker"
)

// answering makes an ensemble of tools that answer with their own names.
func answering(name string, tools ...string) *ensemble.Ensemble {
	var invokers []invoker.Invoker
	for _, tool := range tools {
		invokers = append(invokers, ensembletest.Returns(tool, tool))
	}
	return ensemble.Local(name, invokers...)
}

func TestNearest(t *testing.T) {
	roster := newRoster(t,
		answering("files", "read_file", "write_file", "list.directory", "copy"),
		answering("db", "query_users", "query_orders", "read_file"),
		answering("weather", "get_weather"),
	)
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ asked, first string }{
		{"files__raed_file", "files__read_file"},
		{"file__read_file", "files__read_file"},
		{"files.read_file", "files__read_file"},
		{"Files/Read-File", "files__read_file"},
		{"write_file", "files__write_file"},
		{"filesystem_server__write_file", "files__write_file"},
		{"weather", "weather__get_weather"},
		{"getWeather", "weather__get_weather"},
		{"mcp__weather__get_weather", "weather__get_weather"},
		{"query_order", "db__query_orders"},
		{"files__list.directory", "files__list_directory-x"},
		{"list_directory", "files__list_directory-x"},
		{"cpoy", "files__copy"},
		{"send_mail", ""},
		{"", ""},
		{strings.Repeat("x", 100_000), ""},
	}
	for _, test := range tests {
		got := catalog.Nearest(test.asked, 3)
		if test.first == "" && len(got) > 0 || test.first != "" && (len(got) == 0 || !strings.HasPrefix(got[0], test.first)) {
			t.Errorf("Nearest(%.40q) = %q, want %q first", test.asked, got, test.first)
		}
	}
	if got, want := catalog.Nearest("read_file", 2), []string{"db__read_file", "files__read_file"}; !slices.Equal(got, want) {
		t.Errorf("Nearest(read_file) = %q, want %q", got, want)
	}
	if got := catalog.Nearest("read_file", 0); len(got) != 0 {
		t.Errorf("Nearest with n = 0 returned %q", got)
	}
	if got := catalog.Nearest("read_file", -1); len(got) != 0 {
		t.Errorf("Nearest with n = -1 returned %q", got)
	}
}

// A prompt that no ensemble has is answered with the full name that was meant.
func TestNearestPrompt(t *testing.T) {
	inLibrary(t, nil, func(t *testing.T, _ *ensembletest.Source, e *ensemble.Ensemble) {
		roster, err := ensemble.NewRoster(e)
		if err != nil {
			t.Fatal(err)
		}
		full := ensemble.NameFor(e.Name(), "review")
		for _, test := range []struct{ asked, message string }{
			{"review", `No ensemble has the prompt "review". Did you mean "` + full + `"?`},
			{"other__review", `No ensemble has the prompt "other__review". Did you mean "` + full + `"?`},
			{"zebra", `No ensemble has the prompt "zebra".`},
		} {
			_, err := roster.GetPrompt(t.Context(), test.asked, nil)
			var failure *invoker.Failure
			if !errors.As(err, &failure) || failure.Code != invoker.NotFound || failure.Message != test.message {
				t.Errorf("%s: %v, want %s", test.asked, err, test.message)
			}
		}
	})
}

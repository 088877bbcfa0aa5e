// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse/httpapi/internal/lists"
)

// TestOf: only the elements of the list itself count.
func TestOf(t *testing.T) {
	most := "[" + strings.Repeat("0,", lists.Most-1) + "0]"
	for text, want := range map[string]error{
		"null": nil, "[]": nil, most: nil, strings.Replace(most, "0", "0,0", 1): lists.ErrTooLong,
		`["` + strings.Repeat(`,\"`, lists.Most) + `",{"a":[0` + strings.Repeat(",0", lists.Most) + `]}]`: nil,
	} {
		var list lists.Of[any]
		if err := json.Unmarshal([]byte(text), &list); !errors.Is(err, want) {
			t.Errorf("%.20s of %d bytes: %v, want %v", text, len(text), err, want)
		}
	}
	var form struct {
		List lists.Of[struct {
			Name string `json:"name"`
		}] `json:"list"`
	}
	wrong := new(json.UnmarshalTypeError)
	if err := json.Unmarshal([]byte(`{"list":[{"name":1}]}`), &form); !errors.As(err, &wrong) || wrong.Field != "list.name" {
		t.Errorf("%v of %q", err, wrong.Field)
	}
}

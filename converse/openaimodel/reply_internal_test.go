// SPDX-License-Identifier: Apache-2.0

package openaimodel

import (
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// A history holds UTF-8 alone.
func TestFinishIsText(t *testing.T) {
	var a accumulator
	a.Add("", gjson.Parse("{\"choices\":[{\"finish_reason\":\"odd\xff\"}]}"))
	if reason := string(a.reason()); !utf8.ValidString(reason) || reason == "" {
		t.Errorf("%q", reason)
	}
}

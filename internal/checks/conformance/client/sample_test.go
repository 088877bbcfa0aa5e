// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
)

func TestSample(t *testing.T) {
	const tool = `{"type":"object","properties":{
		"a":{"type":"number"},"b":{"type":"integer","minimum":7},"c":{"enum":["x","y"]},"d":{"type":["string","null"]},
		"e":{"type":"object","properties":{"f":{"type":"boolean"},"g":{"type":"string"}},"required":["f"]},
		"h":{"type":"array"},"i":{"anyOf":[{"const":4}]},"j":{"default":"given"}},"required":["a","j"]}`
	for _, tt := range []struct {
		name, schema string
		all          bool
		want         string
	}{
		{"all", tool, optional, `{"a":1,"b":7,"c":"x","d":"text","e":{"f":true},"h":[],"i":4,"j":"given"}`},
		{"what is needed", tool, required, `{"a":1}`},
		{"no schema", ``, optional, `{}`},
		{"anything goes", `true`, optional, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(sample(json.RawMessage(tt.schema), tt.all)); got != tt.want {
				t.Errorf("sample = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWithoutNulls(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":null,"b":[null],"c":1}`: `{"b":[null],"c":1}`,
		`no JSON`:                     `no JSON`,
	} {
		if got := string(withoutNulls(json.RawMessage(in))); got != want {
			t.Errorf("withoutNulls(%s) = %s, want %s", in, got, want)
		}
	}
}

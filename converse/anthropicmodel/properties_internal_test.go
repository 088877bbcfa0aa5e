// SPDX-License-Identifier: Apache-2.0

package anthropicmodel

import "testing"

// JSON Schema tells members apart by their case, and by other letters that encoding/json takes for the same.
func TestCheckProperties(t *testing.T) {
	for schema, refused := range map[string]bool{
		`{"properties":{"a":{}}}`:                                false,
		`{"properties":{"a b":{}}}`:                              true,
		`{"properties":{"a":{}},"Properties":{"a b":{}}}`:        false,
		`{"Properties":[1]}`:                                     false,
		"{\"properties\":{\"a b\":{}},\"propertie\u017f\":null}": true,
	} {
		if err := checkProperties([]byte(schema)); (err != nil) != refused {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package grammar

// KeyError is an error about a key that was found after the file was read.
type KeyError struct {
	Key    string // path of the key, or its last part if a table's error wraps this one
	Origin string // FILE:LINE of a table from another file; empty if unknown
	Err    error
}

func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }
func (e *KeyError) Unwrap() error { return e.Err }

// About wraps err as an error about a key. If err is a [*KeyError] already, key is prepended
// to its path. It returns nil if err is nil.
func About(key string, err error) error {
	if err == nil {
		return nil
	}
	if of, ok := err.(*KeyError); ok {
		return &KeyError{key + "." + of.Key, of.Origin, of.Err}
	}
	return &KeyError{Key: key, Err: err}
}

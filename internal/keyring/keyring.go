// SPDX-License-Identifier: Apache-2.0

// Package keyring keeps a short text in the keyring of the operating system: the Keychain of
// macOS, the Credential Manager of Windows, and the Secret Service of Linux and the BSDs.
package keyring

import (
	"errors"
	"fmt"
	"time"

	"github.com/consort-go/consort/internal/loginkey"
	"github.com/zalando/go-keyring"
)

// service is the name that people see in the program that manages their keyring.
const service = "consort"

// patience bounds the wait for a person who is asked to unlock the keyring.
const patience = time.Minute

// Entry is an entry of the keyring.
type Entry struct {
	// Account is the name of the entry.
	Account string

	gate chan struct{} // has room for one operation; made by New
}

// New returns the entry of that name.
func New(account string) *Entry { return &Entry{Account: account, gate: make(chan struct{}, 1)} }

// Get implements [loginkey.Keyring].
func (e *Entry) Get() (string, error) {
	return e.within(func() (string, error) { return keyring.Get(service, e.Account) })
}

// Set implements [loginkey.Keyring].
func (e *Entry) Set(text string) error {
	_, err := e.within(func() (string, error) { return "", keyring.Set(service, e.Account, text) })
	return err
}

// Delete implements [loginkey.Keyring].
func (e *Entry) Delete() error {
	_, err := e.within(func() (string, error) { return "", keyring.Delete(service, e.Account) })
	return err
}

// within waits for one operation with a bound. An operation that waits for a person cannot
// be ended; no other one begins before it ends.
func (e *Entry) within(operation func() (string, error)) (string, error) {
	if err := available(); err != nil {
		return "", err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	unanswered := fmt.Errorf("it did not answer within %s: unlock it and try again", patience)
	select {
	case e.gate <- struct{}{}:
	case <-late.C:
		return "", unanswered
	}
	type outcome struct {
		text string
		error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := operation()
		<-e.gate
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		if errors.Is(o.error, keyring.ErrNotFound) {
			return "", loginkey.ErrNotFound
		}
		return o.text, o.error
	case <-late.C:
		return "", unanswered
	}
}

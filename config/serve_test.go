// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/consort-go/consort/config"
)

// Who may reach an address is asked where the file names it and where somebody
// else does.
func TestAddressesThatNeedATokenAreKnown(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.1.2.3:80", "[::1]:80", "localhost:80", "LocalHost:80"} {
		if _, err := parse("serve = {http = '"+address+"'}", nil); err != nil {
			t.Error(err)
		}
	}
	exposed := []string{":80", "0.0.0.0:80", "[::]:80", "10.1.2.3:80", "localhost.example:80", "[::ffff:10.0.0.1]:80"}
	for _, address := range exposed {
		if _, err := parse("serve = {http = '"+address+"'}", nil); err == nil {
			t.Errorf("%s is open to everybody", address)
		}
		for _, allowed := range []string{"open = true", "token = '0123456789abcdef'", "clients = [{token = '0123456789abcdef'}]"} {
			if _, err := parse("serve = {http = '"+address+"', "+allowed+"}", nil); err != nil {
				t.Errorf("%s: %v", allowed, err)
			}
		}
	}
	if err := new(config.Serve).MayListen("80"); err == nil {
		t.Error("a port is taken for an address")
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !windows

package keyring

import (
	"errors"
	"fmt"
	"os"
)

// available reports why there can be no keyring: without the message bus of a session, the
// D-Bus library would start one.
func available() error {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return nil
	}
	if _, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid())); err == nil {
		return nil
	}
	return errors.New("this session has no message bus (DBUS_SESSION_BUS_ADDRESS is not set)")
}

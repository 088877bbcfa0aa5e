// SPDX-License-Identifier: Apache-2.0

package engine

import "reflect"

// InHand returns how many conversations an engine holds at the moment: those with a
// running operation, and those with an alarm.
func (l *Local) InHand() (talks, alarms int) {
	l.scheduler.mu.Lock()
	defer l.scheduler.mu.Unlock()
	l.checks.mu.Lock()
	defer l.checks.mu.Unlock()
	return len(l.scheduler.slots), len(l.checks.byConversation)
}

// Begun returns of how many conversations an engine remembers calls that it has begun, while none is running.
func (l *Local) Begun() int { return reflect.ValueOf(&l.begun).Elem().FieldByName("of").Len() }

// SPDX-License-Identifier: Apache-2.0

package budget

import "time"

// Book is the state of a ledger that works in memory: accounts and open reservations.
// Its zero value is empty. It can be stored as JSON. Its methods must not be called
// concurrently.
type Book struct {
	Accounts map[string]Account `json:"accounts,omitempty"`
	Open     map[string]Open    `json:"open,omitempty"` // by reservation ID

	next time.Time // no reservation or account expires earlier
}

// Account is an account in a [Book].
type Account struct {
	Spent    int64     `json:"spent,omitzero"`
	Reserved int64     `json:"reserved,omitzero"`
	Ends     time.Time `json:"ends,omitzero"`
}

// Open is an open reservation in a [Book].
type Open struct {
	Amounts map[string]int64 `json:"amounts"` // by account
	Expires time.Time        `json:"expires"`
}

// Reserve implements [Ledger.Reserve]. The caller must have called Tidy and the Check
// of the reservation.
func (b *Book) Reserve(r Reservation) ([]int64, error) {
	balances := make([]Balance, len(r.Lines))
	for i, line := range r.Lines {
		balances[i] = b.Balance(line.Account)
	}
	var replaced []string
	for id, open := range b.Open {
		if !r.Replaces(id) {
			continue
		}
		replaced = append(replaced, id)
		for i, line := range r.Lines {
			balances[i].Reserved -= open.Amounts[line.Account]
		}
	}
	granted, err := r.Grant(balances)
	if err != nil {
		return nil, err
	}
	for _, id := range replaced {
		b.Release(id)
	}
	b.Put(r, granted)
	return granted, nil
}

// Release sets the amounts of an open reservation to 0. It can still be settled.
func (b *Book) Release(id string) {
	for name, amount := range b.Open[id].Amounts {
		account := b.Accounts[name]
		account.Reserved -= amount
		b.Accounts[name] = account
		b.Open[id].Amounts[name] = 0
	}
}

// Put records a reservation with the amounts granted to it.
func (b *Book) Put(r Reservation, granted []int64) {
	if b.Accounts == nil {
		b.Accounts = map[string]Account{}
	}
	if b.Open == nil {
		b.Open = map[string]Open{}
	}
	b.close(r.ID, func(string, int64) int64 { return 0 })
	amounts := make(map[string]int64, len(granted))
	for i, line := range r.Lines {
		account := b.Accounts[line.Account]
		account.Reserved += granted[i]
		account.Ends = line.Ends
		b.Accounts[line.Account] = account
		amounts[line.Account] = granted[i]
		b.forgetLater(line.Ends)
	}
	b.Open[r.ID] = Open{Amounts: amounts, Expires: r.Expires}
	b.until(r.Expires)
}

// until brings next forward to due.
func (b *Book) until(due time.Time) {
	if due.Before(b.next) {
		b.next = due
	}
}

// forgetLater schedules the removal of an account.
func (b *Book) forgetLater(ends time.Time) {
	if !ends.IsZero() {
		b.until(ends.Add(Keep))
	}
}

// Settle implements [Ledger.Settle]. The caller must have called CheckSpent.
func (b *Book) Settle(id string, spent map[string]int64) {
	b.close(id, func(account string, reserved int64) int64 {
		if amount, ok := spent[account]; ok {
			return amount
		}
		return reserved
	})
}

// close ends a reservation, if it is open, and adds the amount spent to each account.
func (b *Book) close(id string, spent func(account string, reserved int64) int64) {
	for name, amount := range b.Open[id].Amounts {
		account := b.Accounts[name]
		account.Reserved -= amount
		account.Spent = Sum(account.Spent, spent(name, amount))
		b.Accounts[name] = account
	}
	delete(b.Open, id)
}

// Balance returns the balance of an account.
func (b *Book) Balance(account string) Balance {
	held := b.Accounts[account]
	return Balance{Spent: held.Spent, Reserved: held.Reserved}
}

// never is later than every due time.
var never = time.Unix(1<<40, 0)

// Tidy closes the reservations that have expired, removes the accounts that ended more
// than [Keep] ago, and reports whether there were any.
func (b *Book) Tidy(now time.Time) (changed bool) {
	if now.Before(b.next) {
		return false
	}
	b.next = never
	for id, open := range b.Open {
		if now.Before(open.Expires) {
			b.until(open.Expires)
			continue
		}
		b.Settle(id, nil)
		changed = true
	}
	for name, account := range b.Accounts {
		if account.Reserved > 0 || account.Ends.IsZero() || now.Before(account.Ends.Add(Keep)) {
			b.forgetLater(account.Ends)
			continue
		}
		delete(b.Accounts, name)
		changed = true
	}
	return changed
}

package demo

import (
	"fmt"
	"time"
)

// kept is how many documents a service has before it writes over the oldest. It bounds the memory
// of a demo that runs for days.
const kept = 50_000

// place is the number from which an id and its partition key are made. The key must follow from the
// id's number, since an id is unique only within a key.
func (w *writer) place() int64 { return w.number % kept }

// parties is the number of customers, accounts and actors: enough for every partition to get a
// share.
const parties = 500

// scatter spreads places over the parties in no visible order; 7919 has no common factor with their
// number.
func scatter(place int64) int64 { return place * 7919 % parties }

func (w *writer) cents(most int) float64 { return float64(w.random.IntN(most*100)+100) / 100 }

func choose[T any](w *writer, from ...T) T { return from[w.random.IntN(len(from))] }

type order struct {
	ID         string      `json:"id"`
	CustomerID string      `json:"customerId"`
	Status     string      `json:"status"`
	Items      []orderItem `json:"items"`
	Total      float64     `json:"total"`
	Currency   string      `json:"currency"`
	PlacedAt   time.Time   `json:"placedAt"`
}

type orderItem struct {
	SKU      string  `json:"sku"`
	Quantity int     `json:"quantity"`
	Price    float64 `json:"price"`
}

func newOrder(w *writer) any {
	o := order{
		ID: fmt.Sprintf("order-%06d", w.place()), CustomerID: fmt.Sprintf("customer-%03d", scatter(w.place())),
		Status: choose(w, "placed", "paid", "shipped"), Currency: "EUR", PlacedAt: w.now().UTC(),
	}
	for range 1 + w.random.IntN(3) {
		item := orderItem{SKU: fmt.Sprintf("SKU-%04d", w.random.IntN(2000)), Quantity: 1 + w.random.IntN(4), Price: w.cents(80)}
		o.Items = append(o.Items, item)
		o.Total += float64(item.Quantity) * item.Price
	}
	return o
}

type payment struct {
	ID        string    `json:"id"`
	AccountID string    `json:"accountId"`
	OrderID   string    `json:"orderId"`
	Method    string    `json:"method"`
	Amount    float64   `json:"amount"`
	Currency  string    `json:"currency"`
	Status    string    `json:"status"`
	BookedAt  time.Time `json:"bookedAt"`
}

func newPayment(w *writer) any {
	return payment{
		ID: fmt.Sprintf("payment-%06d", w.place()), AccountID: fmt.Sprintf("account-%03d", scatter(w.place())),
		OrderID: fmt.Sprintf("order-%06d", w.random.IntN(kept)), Method: choose(w, "card", "transfer", "wallet"),
		Amount: w.cents(300), Currency: "EUR", Status: choose(w, "authorized", "captured"), BookedAt: w.now().UTC(),
	}
}

type auditEntry struct {
	ID     string    `json:"id"`
	Actor  string    `json:"actor"`
	Action string    `json:"action"`
	Object string    `json:"object"`
	At     time.Time `json:"at"`
}

func newAuditEntry(w *writer) any {
	return auditEntry{
		ID: fmt.Sprintf("entry-%06d", w.place()), Actor: fmt.Sprintf("employee-%03d", scatter(w.place())),
		Action: choose(w, "read", "update", "export"), Object: fmt.Sprintf("customer-%03d", w.random.IntN(parties)), At: w.now().UTC(),
	}
}

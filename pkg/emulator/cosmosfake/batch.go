package cosmosfake

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// batchOperation is one operation of a batch as clients send it.
type batchOperation struct {
	Type         string          `json:"operationType"`
	ID           string          `json:"id"`
	PartitionKey json.RawMessage `json:"partitionKey"` // a JSON array, or a string that holds one
	IfMatch      string          `json:"ifMatch"`
	IfNoneMatch  string          `json:"ifNoneMatch"`
	Body         json.RawMessage `json:"resourceBody"`
}

type batchResult struct {
	Status  int             `json:"statusCode"`
	Sub     int             `json:"subStatusCode,omitempty"`
	Charge  float64         `json:"requestCharge"`
	Etag    string          `json:"eTag,omitempty"`
	Body    json.RawMessage `json:"resourceBody,omitempty"`
	Message string          `json:"message,omitempty"`
}

// mostBatchOperations is the service's limit.
const mostBatchOperations = 100

// hybridRow is the first byte of HybridRowVersion.V1 (azure-cosmos-dotnet-v3, HybridRowVersion.cs
// and TransactionalBatchResponse.cs), a binary form of batches that this package does not read.
const hybridRow = 0x81

// executeBatch runs several operations: atomically within one logical partition, or each for itself
// within one range.
func (c *call) executeBatch() (*reply, error) {
	if len(c.body) > 0 && c.body[0] == hybridRow {
		const refusal = "HybridRow is not offered: .NET sends transactional batch and bulk in that form only. Use one request per item."
		// .NET drops the body of the answer
		c.server.hybridRow.Do(func() { c.server.logger.Warn(refusal) })
		return nil, badRequest(refusal)
	}
	var operations []batchOperation
	if err := json.Unmarshal(c.body, &operations); err != nil {
		return nil, badRequest("The input content is not a JSON array of operations.")
	}
	if n := len(operations); n == 0 || n > mostBatchOperations {
		return nil, badRequest("A batch has between 1 and %d operations.", mostBatchOperations)
	}
	if isTrue(c.Header, "x-ms-cosmos-batch-atomic") {
		return c.executeAtomically(operations)
	}
	return c.executeSeparately(operations)
}

// errBatchFailed rolls back the transaction of a batch; the results say what failed.
var errBatchFailed = errors.New("an operation of the batch failed")

func (c *call) executeAtomically(operations []batchOperation) (*reply, error) {
	key, err := c.headerKey()
	if err != nil {
		return nil, err
	}
	if err := c.admit(c.container.routing.Load().owner(key.epk)); err != nil {
		return nil, err
	}
	var results []batchResult
	var lsn uint64
	p, err := c.container.write(key.epk, c.now, func(t *transaction) error {
		lsn = t.lsn
		results = make([]batchResult, len(operations))
		for i, o := range operations {
			results[i] = c.run(t, key, o)
			if results[i].Status < http.StatusBadRequest {
				continue
			}
			for other := range results {
				if other != i {
					results[other] = batchResult{Status: http.StatusFailedDependency}
				}
			}
			return errBatchFailed
		}
		if len(t.changed) == 0 {
			lsn = t.partition.lsn
		}
		return nil
	})
	status := http.StatusOK
	if errors.Is(err, errBatchFailed) {
		status, lsn = http.StatusMultiStatus, lsn-1
	}
	return c.batchReply(status, results, p, lsn), nil
}

func (c *call) executeSeparately(operations []batchOperation) (*reply, error) {
	owner, err := c.namedRange()
	if err != nil {
		return nil, err
	}
	if owner == nil {
		return nil, badRequest("A batch that is not atomic names the partition key range it is for.")
	}
	if err := c.admit(owner); err != nil {
		return nil, err
	}
	var lsn uint64
	results := make([]batchResult, len(operations))
	for i, o := range operations {
		key, err := o.key(c)
		if err != nil {
			results[i] = failed(err)
			continue
		}
		if !owner.span.contains(key.epk) {
			return nil, rangeGone(owner.id)
		}
		_, err = c.container.write(key.epk, c.now, func(t *transaction) error {
			results[i] = c.run(t, key, o)
			lsn = t.lsn
			if results[i].Status >= http.StatusBadRequest {
				return errBatchFailed
			}
			return nil
		})
		if err != nil {
			lsn--
		}
	}
	return c.batchReply(overallStatus(results), results, owner, lsn), nil
}

// overallStatus is the status of a batch whose operations stand for themselves: 207 where one of
// them failed.
func overallStatus(results []batchResult) int {
	for _, r := range results {
		if r.Status >= http.StatusBadRequest {
			return http.StatusMultiStatus
		}
	}
	return http.StatusOK
}

func (c *call) batchReply(status int, results []batchResult, p *partition, lsn uint64) *reply {
	charge := 0.0
	for _, r := range results {
		charge += r.Charge
	}
	c.spend(p, charge)
	r := jsonReply(status, results, round(charge))
	c.progress(r, p, lsn)
	return r
}

// key is the partition key of an operation in a batch that is not atomic.
func (o batchOperation) key(c *call) (partitionKey, error) {
	text := string(o.PartitionKey)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(o.PartitionKey, &text); err != nil {
			return partitionKey{}, badRequest("The partition key of an operation is not a JSON array.")
		}
	}
	return c.container.key.parse(text)
}

func failed(err error) batchResult {
	var f *fault
	if !errors.As(err, &f) {
		return batchResult{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	return batchResult{Status: f.status, Sub: f.substatus, Charge: f.charge, Message: f.message}
}

func (c *call) run(t *transaction, key partitionKey, o batchOperation) batchResult {
	done, err := c.operate(t, key, o)
	if err != nil {
		return failed(err)
	}
	r := batchResult{Status: done.status, Charge: writeCharge(done.size())}
	if done.document != nil {
		r.Etag = done.document.etag
		if !c.minimal() || o.Type == "Read" {
			r.Body = done.document.json()
		}
	}
	return r
}

func (c *call) operate(t *transaction, key partitionKey, o batchOperation) (outcome, error) {
	name := documentName{key.text, o.ID}
	switch o.Type {
	case "Create", "Upsert", "Replace":
		content, err := c.container.key.parseContent(o.Body)
		if err != nil {
			return outcome{}, err
		}
		if err := checkKey(key, content); err != nil {
			return outcome{}, err
		}
		switch o.Type {
		case "Create":
			return t.create(content)
		case "Upsert":
			return t.upsert(content, o.IfMatch)
		}
		return t.replace(name, content, o.IfMatch)
	case "Delete":
		return t.remove(name, o.IfMatch)
	case "Patch":
		p, err := parsePatch(o.Body)
		if err != nil {
			return outcome{}, err
		}
		return t.patch(name, p, o.IfMatch)
	case "Read":
		d, err := t.existing(name, "")
		if err != nil {
			return outcome{}, err
		}
		if o.IfNoneMatch == d.etag {
			return outcome{status: http.StatusNotModified}, nil
		}
		return outcome{http.StatusOK, d}, nil
	}
	return outcome{}, badRequest("The operation type %q is not known.", o.Type)
}

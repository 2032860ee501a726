package tablestore

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The limits of the service: 64 KiB per property, which is 32 Ki UTF-16 code units of a string, and
// 1 MiB per entity with its keys and names
// (https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model).
// One chunk of 64 KiB is left for the keys, the names and the columns that people read.
const (
	maxStringUnits = 32_000
	maxChunkBytes  = 64 << 10
	maxChunks      = 15
	// maxRows is the most that a query reads.
	maxRows = 100_000
)

// split stores content in the properties name0, name1 and so on, at least one. The error has the greatest
// number of bytes.
func split(properties map[string]any, name string, content []byte) error {
	if len(content) > maxChunks*maxChunkBytes {
		return fmt.Errorf("it takes %d bytes, of %d", len(content), maxChunks*maxChunkBytes)
	}
	for i := 0; i == 0 || len(content) > 0; i++ {
		chunk := content[:min(len(content), maxChunkBytes)]
		properties[chunkName(name, i)] = aztables.EDMBinary(chunk)
		content = content[len(chunk):]
	}
	return nil
}

// join is the inverse of split.
func join(properties map[string]any, name string) ([]byte, error) {
	var content []byte
	for i := 0; ; i++ {
		chunk, ok := properties[chunkName(name, i)].(aztables.EDMBinary)
		switch {
		case ok:
			content = append(content, chunk...)
		case i == 0:
			return nil, fmt.Errorf("it has no %s", chunkName(name, 0))
		default:
			return content, nil
		}
	}
}

func chunkName(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }

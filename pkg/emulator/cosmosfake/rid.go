package cosmosfake

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// A resource id (RID) is the base64 form of its bytes, with - for /: 4 bytes for a database, 4 more
// for a container in it (the top bit of the fifth byte set), 8 more for a document or a partition
// key range (told apart by the top four bits of the last byte).
const (
	containerMark = 0x80
	rangeMark     = 0x50
)

func encodeRID(b []byte) string {
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", "-")
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func newDatabaseRID() []byte { return append(randomBytes(3), 0) }

func newContainerRID(database []byte) []byte {
	own := randomBytes(4)
	own[0] |= containerMark
	return append(append([]byte{}, database...), own...)
}

func documentRID(container []byte, serial uint64) string {
	return encodeRID(binary.LittleEndian.AppendUint64(append([]byte{}, container...), serial))
}

func rangeRID(container []byte, serial uint64) string {
	return documentRID(container, serial|rangeMark<<56)
}

package main

import (
	"strings"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

type zkSession struct{ connection *zk.Conn }

type zkLocker struct{ lock_ *zk.Lock }

func (l zkLocker) lock() error   { return l.lock_.Lock() }
func (l zkLocker) unlock() error { return l.lock_.Unlock() }

func (s zkSession) locker(path string) locker {
	return zkLocker{zk.NewLock(s.connection, path, zk.WorldACL(zk.PermAll))}
}

func (s zkSession) close() { s.connection.Close() }

func dial(o options) session {
	connection, events, err := zk.Connect(strings.Split(o["connect"], ","), 30*time.Second,
		zk.WithLogger(silent{}), zk.WithLogInfo(false))
	must(err)
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	go func() {
		for range events {
		}
	}()
	return zkSession{connection}
}

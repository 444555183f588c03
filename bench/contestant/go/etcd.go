package main

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

type etcdSession struct{ session *concurrency.Session }

type etcdLocker struct{ mutex *concurrency.Mutex }

func (l etcdLocker) lock() error   { return l.mutex.Lock(context.Background()) }
func (l etcdLocker) unlock() error { return l.mutex.Unlock(context.Background()) }

func (s etcdSession) locker(path string) locker {
	return etcdLocker{concurrency.NewMutex(s.session, path)}
}

func (s etcdSession) close() { s.session.Close() }

func dial(o options) session {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(o["connect"], ","), DialTimeout: 20 * time.Second})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	must(err)
	return etcdSession{session}
}

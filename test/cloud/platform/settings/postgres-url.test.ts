import { expect, test } from 'vitest'
import {
  hostsInClear,
  postgresAddress,
  readPostgresUrl,
  serverName,
} from '../../../../cloud/platform/settings/postgres-url.ts'

const problemOf = (url: string): string => {
  const read = readPostgresUrl(url)
  return read.ok ? '' : read.problem
}
const serversOf = (url: string): string => postgresAddress(url).servers.map(serverName).join(' ')

test.each([
  ['postgres://u@db.example/larder', 'db.example:5432'],
  ['postgresql://u@db.example:6000/larder', 'db.example:6000'],
  ['postgres://u@[2001:db8::1]:6000/larder', '[2001:db8::1]:6000'],
  ['postgres://[::1]/larder', '[::1]:5432'],
  ['postgres://u@[fe80::1%25eth0]:6000/larder', '[fe80::1%eth0]:6000'],
  ['postgres://u@[fe80::1%25eth0],[fe80::2%25en%301]:1/larder', '[fe80::1%eth0]:5432 [fe80::2%en01]:1'],
  ['postgres://u@/larder?host=[fe80::1%25eth0]', '[fe80::1%eth0]:5432'],
  ['postgres://u@h1,h2/larder', 'h1:5432 h2:5432'],
  ['postgres://u@h1:1,h2:2,[::1]:3/larder', 'h1:1 h2:2 [::1]:3'],
  ['postgres://u@/larder?host=h1,h2', 'h1:5432 h2:5432'],
  ['postgres://u@/larder?host=h1,h2&port=1', 'h1:1 h2:1'],
  ['postgres://u@/larder?host=h1,h2&port=1,2', 'h1:1 h2:2'],
  ['postgres://u@localhost:77/larder?host=/run/pg', '/run/pg/.s.PGSQL.77'],
  ['postgres://u@%2Frun%2Fpg/larder', '/run/pg/.s.PGSQL.5432'],
  ['postgres:///larder', '/var/run/postgresql/.s.PGSQL.5432'],
])('the servers of %s are %s', (url, servers) => {
  expect(serversOf(url)).toBe(servers)
})

test('user, password and database are decoded, and parameters replace them', () => {
  expect(postgresAddress('postgres://us%40er:p%40ss%2Fw%3A0rd@h/my%20db')).toMatchObject({
    user: 'us@er',
    password: 'p@ss/w:0rd',
    database: 'my db',
  })
  expect(postgresAddress('postgres://h/a?user=u&password=p%26&dbname=b')).toMatchObject({
    user: 'u',
    password: 'p&',
    database: 'b',
  })
  expect(postgresAddress('postgres://u:a:b@h')).toMatchObject({ password: 'a:b', database: undefined })
})

test.each([
  ['postgres://u:p@ss/w0rd@h/db', /percent-encoded/],
  ['postgres://u:p@ssw0rd@h/db', /percent-encoded/],
  ['postgres://u:pw0rd/ss@h/db', /percent-encoded/],
  ['postgres://u:/ss?w0rd=@h/db', /percent-encoded/],
  ['postgres://u:50%w0rd@h/db', /percent-encoded/],
  ['postgres://u:w0rd@h:5432x/db', /HOST:PORT/],
  ['postgres://u:w0rd@h:0/db', /HOST:PORT/],
  ['postgres://u:w0rd@h:70000/db', /HOST:PORT/],
  ['postgres://u:w0rd@[fe80::1%eth0]/db', /its zone as %25eth0/],
  ['postgres://u:w0rd@[fe80::1%00]/db', /HOST:PORT/],
  ['postgres://u:w0rd@::1/db', /IPv6 in brackets/],
  ['postgres://u:w0rd@h1,h2,h3/db?port=1,2', /port must have one value/],
  ['postgres://u:w0rd@h/db?sslmode', /NAME=VALUE/],
  ['postgres://u:w0rd@h/db?sslmode=on', /sslmode must be one of disable, allow, prefer/],
  ['postgres://u:w0rd@h/db?sslmode=no-verify', /sslmode must be one of/],
  ['postgres://u:w0rd@h/db?sslmode=verify-ca', /sslmode=verify-ca needs sslrootcert=FILE/],
  ['postgres://u:w0rd@h/db?sslmode=require&sslrootcert=system', /sslmode=verify-full/],
  ['postgres://u:w0rd@h/db?sslcert=a.pem', /sslcert and sslkey must be set together/],
  ['postgres://u:w0rd@h/db?sslnegotiation=direct', /needs sslmode=require/],
  ['postgres://u:w0rd@h/db?target_session_attrs=standby', /any, read-write or primary: the service writes/],
  ['postgres://u:w0rd@h/db?SSLMODE=require', /"SSLMODE" is not supported/],
  [
    'postgres://u:w0rd@h/db?channel_binding=require',
    /channel_binding must be left out or be disable or prefer/,
  ],
  ['postgres://u:w0rd@h/db?connect_timeout=3', /DATABASE_READ_WAIT_MS/],
])('the address %s is refused in a sentence without its password', (url, sentence) => {
  expect(problemOf(url)).toMatch(sentence)
  expect(problemOf(url)).not.toMatch(/w0rd/)
})

test('parameters with the service’s own defaults are accepted', () => {
  for (const parameter of [
    'target_session_attrs=read-write',
    'gssencmode=prefer',
    'channel_binding=prefer',
    'load_balance_hosts=disable',
    'client_encoding=UTF8',
    'application_name=shop',
    'options=-c%20search_path%3Dlarder',
  ])
    expect(problemOf(`postgres://u@h/db?${parameter}`)).toBe('')
})

test.each([
  ['postgres://u@db.example/larder', ['db.example:5432']],
  ['postgres://u@db.example/larder?sslmode=disable', ['db.example:5432']],
  ['postgres://u@db.example/larder?sslmode=prefer', ['db.example:5432']],
  ['postgres://u@db.example/larder?sslmode=require', []],
  ['postgres://u@db.example/larder?sslmode=verify-full', []],
  ['postgres://u@db.example/larder?ssl=true', []],
  ['postgres://u@127.0.0.1,10.0.0.2,[::1],localhost/larder', ['10.0.0.2:5432']],
  ['postgres://u@/larder?host=/run/pg&sslmode=disable', []],
])('the address %s calls these remote hosts unencrypted: %j', (url, hosts) => {
  expect(hostsInClear(postgresAddress(url))).toEqual(hosts)
})

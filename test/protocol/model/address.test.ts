import { expect, test } from 'vitest'
import { addressOf, bareHost, isAddress, urlHost } from '../../../protocol/model/address.ts'

const PORTS = { 'mqtt:': 1883, 'mqtts:': 8883 }

test.each([
  ['mqtt://[::1]', { host: '::1', port: 1883, servername: undefined }],
  ['mqtts://[2001:db8::7]:18830', { host: '2001:db8::7', port: 18830, servername: undefined }],
  ['mqtts://192.0.2.1', { host: '192.0.2.1', port: 8883, servername: undefined }],
  ['mqtts://broker.example:1', { host: 'broker.example', port: 1, servername: 'broker.example' }],
  ['mqtt://larder%2Dcloud:a%40b@h', { host: 'h', port: 1883, username: 'larder-cloud', password: 'a@b' }],
])(
  'the address of %s has no brackets, the right port, and a server name only for a name',
  (url, expected) => {
    expect(addressOf(url, PORTS)).toMatchObject(expected)
  },
)

test('an address of another protocol is refused', () => {
  expect(() => addressOf('http://h', PORTS)).toThrow('mqtt:// or mqtts://')
})

test('brackets are removed once for sockets and added once for URLs', () => {
  expect([bareHost('[::1]'), bareHost('::1'), bareHost('name')]).toEqual(['::1', '::1', 'name'])
  expect([urlHost('::1'), urlHost('[::1]'), urlHost('127.0.0.1')]).toEqual(['[::1]', '[::1]', '127.0.0.1'])
  expect([isAddress('::1'), isAddress('10.0.0.1'), isAddress('a.example')]).toEqual([true, true, false])
})

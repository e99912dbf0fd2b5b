import { expect, test } from 'vitest'
import { headProblem, isPlainBody } from '../../../protocol/model/http-refusals.ts'

test.each([
  [undefined, true],
  ['', true],
  ['identity', true],
  ['Identity, identity', true],
  ['gzip', false],
  ['identity, br', false],
  ['aws-chunked', false],
])('a body with the Content-Encoding %j counts as plain: %s', (coding, expected) => {
  expect(isPlainBody(coding)).toBe(expected)
})

const head = (url: string, hosts: string[], httpVersion = '1.1') => ({
  url,
  httpVersion,
  headers: hosts[0] === undefined ? {} : { host: hosts[0] },
  rawHeaders: hosts.flatMap((host) => ['Host', host]),
})

test.each([
  ['/', ['larder.example']],
  ['/a?b=c\\d', ['127.0.0.1:8080']],
  ['/', ['[2001:db8::1]:8080']],
  ['/', ['LARDER.example.']],
  ['https://larder.example/a', ['larder.example']],
])('a request for %s at the host %s is served', (url, hosts) => {
  expect(headProblem(head(url, hosts))).toBeUndefined()
})

test.each([
  ['/', [], 'missing'],
  ['/', [''], 'empty'],
  ['/', ['a', 'a'], 'more than one'],
  ['/', ['a/b'], 'not the name of a host'],
  ['/', ['a?b'], 'not the name of a host'],
  ['/', ['a:b'], 'not the name of a host'],
  ['/', ['a:70000000'], 'not the name of a host'],
  ['*', ['a'], 'not a path'],
  ['a', ['a'], 'not a path'],
  ['/a\\b', ['a'], 'not a path'],
  ['ftp://a/b', ['a'], 'not a path'],
  ['http://', ['a'], 'not a path'],
])('a request for %s at the hosts %j is refused: %s', (url, hosts, problem) => {
  expect(headProblem(head(url, hosts))).toContain(problem)
})

test('an HTTP/1.0 request needs no Host header', () => {
  expect(headProblem(head('/', [], '1.0'))).toBeUndefined()
  expect(headProblem(head('/', [''], '1.0'))).toBeUndefined()
})

import { expect, test } from 'vitest'
import {
  connectionProblem,
  isCertificateRevoked,
  isLoginRefused,
} from '../../../protocol/mqtt/connection-problem.ts'

const error = (message: string, fields: object = {}): Error => Object.assign(new Error(message), fields)

test.each([
  [
    error('getaddrinfo ENOTFOUND broker.example', { code: 'ENOTFOUND', hostname: 'broker.example' }),
    'the name broker.example is unknown: check MQTT_URL and the name server (DNS) (ENOTFOUND)',
  ],
  [
    error('connect', { code: 'ECONNREFUSED', address: '::1', port: 8883 }),
    '::1 port 8883 refuses connections: no broker listens there (ECONNREFUSED)',
  ],
  [
    error('', {
      code: 'ECONNREFUSED',
      errors: [error('connect', { code: 'ECONNREFUSED', address: '127.0.0.1', port: 1 })],
    }),
    '127.0.0.1 port 1 refuses connections: no broker listens there (ECONNREFUSED)',
  ],
  [error('connack timeout'), 'the broker accepts the connection and does not answer'],
  [
    error('wrong version number', { code: 'ERR_SSL_WRONG_VERSION_NUMBER' }),
    'the port of MQTT_URL does not speak TLS: use mqtt:// or another port (ERR_SSL_WRONG_VERSION_NUMBER)',
  ],
  [
    error('sslv3 alert certificate expired', { code: 'ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED' }),
    'the broker refuses the client certificate: it has expired (ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED)',
  ],
  [
    error('ssl/tls alert certificate expired', { code: 'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED' }),
    'the broker refuses the client certificate: it has expired (ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED)',
  ],
  [error('something else'), 'something else'],
])('the connection error %s is reported as: %s', (problem, words) => {
  expect(connectionProblem(problem)).toBe(words)
})

test.each([
  [
    error('getaddrinfo ENOTFOUND shop.example', { code: 'ENOTFOUND', hostname: 'shop.example' }),
    'the name shop.example is unknown: check --cloud and the name server (DNS) (ENOTFOUND)',
  ],
  [
    error('', { errors: [error('', { code: 'ECONNREFUSED', address: '::1', port: 443 })] }),
    '::1 port 443 refuses connections: no cloud listens there (ECONNREFUSED)',
  ],
  [error('', { code: 'ECONNRESET' }), 'the cloud, or something before it, ended the connection (ECONNRESET)'],
  [
    error('wrong version number', { code: 'EPROTO' }),
    'the port of --cloud does not speak TLS: use another port (EPROTO)',
  ],
])('the error %s of an enrolment names the cloud and its option, not the broker: %s', (problem, words) => {
  expect(connectionProblem(problem, { name: 'cloud', setting: '--cloud' })).toBe(words)
})

test('a certificate that is refused as revoked is recognised by its error, and an expired certificate is not', () => {
  for (const version of ['SSLV3', 'SSL/TLS']) {
    const alert = (name: string) =>
      connectionProblem(error('alert', { code: `ERR_SSL_${version}_ALERT_CERTIFICATE_${name}` }))
    expect([isCertificateRevoked(alert('REVOKED')), isCertificateRevoked(alert('EXPIRED'))]).toEqual([
      true,
      false,
    ])
  }
})

test('a refused login is recognised by its error message', () => {
  for (const why of ['Not authorized', 'Bad username or password'])
    expect(isLoginRefused(connectionProblem(error(`Connection refused: ${why}`)))).toBe(true)
  expect(isLoginRefused(connectionProblem(error('Connection refused: Server unavailable')))).toBe(false)
})

import {
  createDecipheriv,
  createECDH,
  createPublicKey,
  createVerify,
  generateKeyPairSync,
  hkdfSync,
} from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { fcmSender } from '../../../../cloud/people/notifications/fcm-sender.ts'
import { publicKeyOf } from '../../../../cloud/people/notifications/senders.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { originMatcher, webPushSender } from '../../../../cloud/people/notifications/web-push-sender.ts'

interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** A push service that records requests and answers with `status`. */
async function pushService(status = 201, answer: unknown = {}) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push({ path: request.url!, headers: request.headers, body: Buffer.concat(chunks) })
      response.writeHead(status).end(JSON.stringify(answer))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const message = { title: 'Title', body: 'Body' }
const about = { orderId: 7, kind: 'order_unclaimed', tag: '3-1700000000000' }
const b64url = (text: string): Buffer => Buffer.from(text, 'base64url')
const results = [
  [200, 'sent'],
  [404, 'gone'],
  [410, 'gone'],
  [429, 'later'],
  [500, 'later'],
  [503, 'later'],
  [400, 'refused'],
  [401, 'refused'],
] as const

/** A browser's subscription, and the decoder of its messages (RFC 8291). */
function browser(endpoint: string) {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys()
  const auth = Buffer.alloc(16, 7)
  const token = JSON.stringify({
    endpoint,
    keys: { p256dh: publicKey.toString('base64url'), auth: auth.toString('base64url') },
  })
  function read(body: Buffer): unknown {
    const salt = body.subarray(0, 16)
    const keyLength = body[20]!
    const sender = body.subarray(21, 21 + keyLength)
    const secret = ecdh.computeSecret(sender)
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), publicKey, sender])
    const ikm = Buffer.from(hkdfSync('sha256', secret, auth, info, 32))
    const key = Buffer.from(hkdfSync('sha256', ikm, salt, 'Content-Encoding: aes128gcm\0', 16))
    const nonce = Buffer.from(hkdfSync('sha256', ikm, salt, 'Content-Encoding: nonce\0', 12))
    const sealed = body.subarray(21 + keyLength)
    const decipher = createDecipheriv('aes-128-gcm', key, nonce)
    decipher.setAuthTag(sealed.subarray(-16))
    const padded = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
    return JSON.parse(padded.subarray(0, padded.lastIndexOf(2)).toString()) as unknown
  }
  return { token, read }
}

/** Keys as operators generate them: both as raw bytes. */
function vapidKeys() {
  const ecdh = createECDH('prime256v1')
  const publicKey = ecdh.generateKeys().toString('base64url')
  return { publicKey, privateKey: ecdh.getPrivateKey().toString('base64url') }
}
const vapid = vapidKeys()

test('Web Push: the public key follows from the private one, and a text that is no key is refused', () => {
  expect(publicKeyOf(vapid.privateKey)).toBe(vapid.publicKey)
  expect(() => publicKeyOf('x')).toThrow('VAPID_PRIVATE_KEY is no private key of Web Push')
})

const webSender = (origins: readonly string[]) =>
  webPushSender({ ...vapid, subject: 'mailto:hub@example.org', origins, ttlSeconds: 600 })

test('Web Push: only the browser can read the message, and its push service knows the sender', async () => {
  const { received, url } = await pushService()
  const { token, read } = browser(`${url}/push/abc`)
  expect(await webSender([url]).send({ platform: 'web', token }, message, about)).toBe('sent')
  const [request] = received
  expect(request).toMatchObject({
    path: '/push/abc',
    headers: { ttl: '600', topic: about.tag, 'content-encoding': 'aes128gcm' },
  })
  expect(request!.body.toString('latin1')).not.toContain('Title')
  expect(read(request!.body)).toEqual({ ...message, ...about })
  const [, jwt, key] = /^vapid t=(.+), ?k=(.+)$/.exec(request!.headers.authorization!)!
  expect(key).toBe(vapid.publicKey)
  const claims = JSON.parse(b64url(jwt!.split('.')[1]!).toString()) as object
  expect(claims).toMatchObject({ aud: url, sub: 'mailto:hub@example.org' })
  const point = b64url(vapid.publicKey)
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => part.toString('base64url'))
  const verifier = createVerify('SHA256').update(jwt!.slice(0, jwt!.lastIndexOf('.')))
  const jwk = { kty: 'EC', crv: 'P-256', x: x!, y: y! }
  const signer = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' as const }
  expect(verifier.verify(signer, b64url(jwt!.split('.')[2]!))).toBe(true)
})

test('Web Push: an error of our own keys does not delete a customer’s subscription', async () => {
  const { url } = await pushService()
  const { token } = browser(`${url}/push/abc`)
  const options = { ...vapid, subject: 'mailto:hub@example.org', origins: [url], ttlSeconds: 600 }
  for (const wrong of [{ subject: 'hub@example.org' }, { publicKey: 'AAAA' }, { privateKey: 'AAAA' }])
    await expect(
      webPushSender({ ...options, ...wrong }).send({ platform: 'web', token }, message, about),
    ).rejects.toThrow()
})

test.each(results)('Web Push: an answer of %i means "%s"', async (status, result) => {
  const { url } = await pushService(status)
  const { token } = browser(`${url}/push/abc`)
  expect(await webSender([url]).send({ platform: 'web', token }, message, about)).toBe(result)
})

test('Web Push: only addresses of push services are called, whatever a browser sends', async () => {
  const { received, url } = await pushService()
  const sender = webSender(['https://*.push.example.org'])
  const tokens = [
    browser(`${url}/push`).token,
    'no JSON',
    '{}',
    '{"endpoint":"file:///etc/passwd","keys":{}}',
  ]
  for (const token of tokens)
    expect(await sender.send({ platform: 'web', token }, message, about)).toBe('gone')
  const offCurve = Buffer.alloc(65, 4).toString('base64url')
  for (const keys of [
    { p256dh: 'AAAA', auth: 'AAAA' },
    { p256dh: offCurve, auth: Buffer.alloc(16).toString('base64url') },
  ]) {
    const broken = JSON.stringify({ endpoint: `${url}/push`, keys })
    expect(await webSender([url]).send({ platform: 'web', token: broken }, message, about)).toBe('gone')
  }
  expect(received).toEqual([])
})

test('a push origin matches the whole host, or a host below a domain', () => {
  const matches = originMatcher(['https://a.example.org', 'https://*.push.example.org'])
  const verdicts = [
    ['https://a.example.org/x', true],
    ['https://b.push.example.org/x', true],
    ['https://push.example.org/x', false],
    ['https://evilpush.example.org/x', false],
    ['http://a.example.org/x', false],
    ['https://a.example.org.evil.org/x', false],
    ['https://a.example.org:444/x', false],
    ['https://a.example.org@evil.org/x', false],
  ] as const
  for (const [url, verdict] of verdicts) expect([url, matches(new URL(url))]).toEqual([url, verdict])
})

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const { clock } = virtualRuntime(1)
const account = {
  project_id: 'larder-test',
  client_email: 'larder@larder-test.example.org',
  private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
}

test('FCM: a message to a device carries a token that the service account signed', async () => {
  const { received, url } = await pushService(200)
  const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
  expect(await sender.send({ platform: 'android', token: 'device' }, message, about)).toBe('sent')
  const [request] = received
  expect(request!.path).toBe('/v1/projects/larder-test/messages:send')
  expect(JSON.parse(request!.body.toString())).toEqual({
    message: {
      token: 'device',
      notification: message,
      data: { order_id: '7', kind: 'order_unclaimed' },
      android: { ttl: '600s', notification: { tag: about.tag } },
      apns: { headers: { 'apns-collapse-id': about.tag } },
    },
  })
  const [head, body, signature] = request!.headers.authorization!.replace('Bearer ', '').split('.')
  const verify = createVerify('RSA-SHA256').update(`${head}.${body}`)
  expect(verify.verify(publicKey, b64url(signature!))).toBe(true)
  expect(JSON.parse(b64url(body!).toString())).toMatchObject({
    iss: account.client_email,
    scope: 'https://www.googleapis.com/auth/firebase.messaging',
  })
})

test('FCM: one token is used until five minutes before its hour ends', async () => {
  const { received, url } = await pushService(200)
  const virtual = virtualRuntime(1)
  const keyed = { ...account, private_key_id: 'key-1' }
  const sender = fcmSender({ account: keyed, url, ttlSeconds: 600, clock: virtual.clock })
  const start = Math.floor(virtual.clock.now() / 1000)
  const sendAt = async (seconds: number) => {
    virtual.clock.advance((start + seconds) * 1000 - virtual.clock.now())
    await sender.send({ platform: 'ios', token: 'device' }, message, about)
    return received.at(-1)!.headers.authorization!
  }
  const first = await sendAt(1)
  expect(await sendAt(3299)).toBe(first)
  const second = await sendAt(3302)
  expect(second).not.toBe(first)
  const [head, body] = second
    .replace('Bearer ', '')
    .split('.')
    .map((part) => b64url(part).toString())
  expect(JSON.parse(head!)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  const { client_email: email } = account
  expect(JSON.parse(body!)).toMatchObject({ iss: email, sub: email, iat: start + 3302, exp: start + 6902 })
})

test('FCM: an unregistered device is recognised among details of other types', async () => {
  for (const other of [null, 'x', 7, {}, { errorCode: null }, { errorCode: 7 }]) {
    const { url } = await pushService(404, { error: { details: [other, { errorCode: 'UNREGISTERED' }] } })
    const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
    expect(await sender.send({ platform: 'ios', token: 'x' }, message, about)).toBe('gone')
  }
  const { url } = await pushService(404, { error: { details: null } })
  const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
  expect(await sender.send({ platform: 'ios', token: 'x' }, message, about)).toBe('refused')
})

/** FCM's answer for a token that is no longer valid. */
const unregistered = {
  error: {
    code: 404,
    message: 'Requested entity was not found.',
    status: 'NOT_FOUND',
    details: [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: 'UNREGISTERED' }],
  },
}

test.each(results)('FCM: an answer of %i means "%s"', async (status, result) => {
  const { url } = await pushService(status, result === 'gone' ? unregistered : {})
  const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
  expect(await sender.send({ platform: 'ios', token: 'device' }, message, about)).toBe(result)
})

test.each([
  [{ error: { code: 404, message: 'Requested entity was not found.', status: 'NOT_FOUND' } }],
  [
    {
      error: {
        code: 404,
        status: 'NOT_FOUND',
        details: [{ '@type': 'type.googleapis.com/google.rpc.Help' }],
      },
    },
  ],
  ['no such page'],
])('FCM: a 404 that does not mention the token does not delete the customer’s device: %j', async (answer) => {
  const { url } = await pushService(404, answer)
  const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
  expect(await sender.send({ platform: 'android', token: 'device' }, message, about)).toBe('refused')
})

test('an unreachable push service is an error with an unknown outcome', async () => {
  const { url } = await pushService()
  for (const close of closers.splice(0)) close()
  const sender = fcmSender({ account, url, ttlSeconds: 600, clock })
  await expect(sender.send({ platform: 'ios', token: 'device' }, message, about)).rejects.toThrow()
})

import { createHash, createHmac, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A bucket on a listening server with the part of S3 that a media store needs. It refuses unsigned requests.
 */
export interface S3Server {
  endpoint: string
  /** Objects by key. */
  objects: Map<string, { bytes: Buffer; type: string | undefined }>
  /** Keys of uploads that have neither been completed nor aborted. */
  uploads(): string[]
  /** The next matching request is answered with 500. */
  failWhen(holds: (method: string, url: URL) => boolean): void
  /** Completions are answered with 200 and an error, like S3's late errors. */
  refuseCompletions: boolean
  /** Largest size of one request, in bytes. */
  largestBody: number
  close(): Promise<void>
}

export const S3_KEY = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
export const S3_REGION = 'eu-test-1'
export const S3_BUCKET = 'media'
const SMALLEST_PART = 5 * 1024 * 1024

export async function startS3Server(): Promise<S3Server> {
  const objects: S3Server['objects'] = new Map()
  const uploads = new Map<string, { key: string; type: string | undefined; parts: Map<number, Buffer> }>()
  let fails: ((method: string, url: URL) => boolean) | undefined
  const http = createServer((request, response) => void serve(request, response))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const server: S3Server = {
    endpoint: `${origin}/${S3_BUCKET}`,
    objects,
    uploads: () => [...uploads.values()].map(({ key }) => key),
    failWhen: (holds) => void (fails = holds),
    refuseCompletions: false,
    largestBody: 0,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
  return server

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    server.largestBody = Math.max(server.largestBody, body.length)
    const url = new URL(request.url!, origin)
    const answer = (status: number, content: string | Buffer = '', headers: Record<string, string> = {}) =>
      void response.writeHead(status, headers).end(content)
    const refuse = (status: number, code: string) =>
      answer(status, `<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message></Error>`)
    if (!isSigned(request, url)) return refuse(403, 'SignatureDoesNotMatch')
    if (fails?.(request.method!, url)) {
      fails = undefined
      return refuse(500, 'InternalError')
    }
    if (!url.pathname.startsWith(`/${S3_BUCKET}/`)) return refuse(404, 'NoSuchBucket')
    const key = decodeURIComponent(url.pathname.slice(S3_BUCKET.length + 2))
    const query = url.searchParams
    const uploadId = query.get('uploadId')
    const upload = uploadId === null ? undefined : uploads.get(uploadId)
    if (uploadId !== null && upload?.key !== key) return refuse(404, 'NoSuchUpload')

    switch (request.method ?? '') {
      case 'GET': {
        if (query.has('uploads')) return answer(200, listing(query.get('prefix') ?? ''))
        if (query.has('list-type')) return answer(200, contents(query.get('prefix') ?? ''))
        const object = objects.get(key)
        if (!object) return refuse(404, 'NoSuchKey')
        const { bytes, type = '' } = object
        const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
        if (!range) return answer(200, bytes, { 'Content-Type': type })
        return answer(206, bytes.subarray(Number(range[1]), Number(range[2]) + 1), { 'Content-Type': type })
      }
      case 'PUT': {
        if (Number(request.headers['content-length'] ?? -1) !== body.length)
          return refuse(411, 'MissingContentLength')
        if (upload) upload.parts.set(Number(query.get('partNumber')), body)
        else objects.set(key, { bytes: body, type: request.headers['content-type'] })
        return answer(200, '', { ETag: etagOf(body) })
      }
      case 'POST': {
        if (query.has('uploads')) {
          const id = randomUUID()
          uploads.set(id, { key, type: request.headers['content-type'], parts: new Map() })
          return answer(
            200,
            `<InitiateMultipartUploadResult><Bucket>${S3_BUCKET}</Bucket><Key>${key}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
          )
        }
        if (!upload) return refuse(400, 'InvalidRequest')
        const named = [...body.toString().matchAll(/<Part>.*?<\/Part>/gs)].map(([part]) => ({
          number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
          etag: /<ETag>(?:"|&quot;)?([0-9a-f]+)/.exec(part)?.[1],
        }))
        const parts = named.map(({ number, etag }) => {
          const part = upload.parts.get(number)
          return part && etagOf(part) === `"${etag}"` ? part : undefined
        })
        if (server.refuseCompletions) return refuse(200, 'InternalError')
        if (parts.includes(undefined) || parts.length === 0) return refuse(400, 'InvalidPart')
        if (parts.slice(0, -1).some((part) => part!.length < SMALLEST_PART))
          return refuse(400, 'EntityTooSmall')
        const bytes = Buffer.concat(parts as Buffer[])
        objects.set(key, { bytes, type: upload.type })
        uploads.delete(uploadId!)
        return answer(
          200,
          `<CompleteMultipartUploadResult><Key>${key}</Key><ETag>&quot;${createHash('md5').update(bytes).digest('hex')}-${parts.length}&quot;</ETag></CompleteMultipartUploadResult>`,
        )
      }
      case 'DELETE': {
        if (upload) uploads.delete(uploadId!)
        else objects.delete(key)
        return answer(204)
      }
      default:
        return refuse(405, 'MethodNotAllowed')
    }
  }

  function contents(prefix: string): string {
    const entries = [...objects]
      .filter(([key]) => key.startsWith(prefix))
      .map(
        ([key, { bytes }]) =>
          `<Contents><Key>${key}</Key><Size>${bytes.length}</Size><ETag>${etagOf(bytes)}</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>`,
      )
    return `<?xml version="1.0"?><ListBucketResult><Name>${S3_BUCKET}</Name><IsTruncated>false</IsTruncated>${entries.join('')}</ListBucketResult>`
  }

  function listing(prefix: string): string {
    const found = [...uploads].filter(([, { key }]) => key.startsWith(prefix))
    const entries = found.map(
      ([id, { key }]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`,
    )
    return `<?xml version="1.0"?><ListMultipartUploadsResult><Bucket>${S3_BUCKET}</Bucket>${entries.join('')}</ListMultipartUploadsResult>`
  }
}

const etagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`

/** AWS Signature Version 4 in the header, as its documentation defines it. */
export function isSigned(request: Pick<IncomingMessage, 'method' | 'headers'>, url: URL): boolean {
  const given =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      request.headers.authorization ?? '',
    )
  if (!given) return false
  const [, keyId, day, region, names, signature] = given as unknown as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const date = String(request.headers['x-amz-date'])
  if (keyId !== S3_KEY.accessKeyId || region !== S3_REGION || !date.startsWith(day)) return false
  if (!names.split(';').includes('host')) return false
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .sort()
    .join('&')
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const content = String(request.headers['x-amz-content-sha256'])
  const canonical = [request.method, url.pathname, query, headers.join(''), names, content].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
  const key = [region, 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${S3_KEY.secretAccessKey}`, day))
  const text = ['AWS4-HMAC-SHA256', date, scope, createHash('sha256').update(canonical).digest('hex')].join(
    '\n',
  )
  return hmac(key, text).toString('hex') === signature
}

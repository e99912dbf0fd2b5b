import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Log } from '../../protocol/model/log.ts'
import {
  DiagnosisRequest,
  MAX_BUNDLE_BYTES,
  type Diagnosis,
  type DiagnosisPart,
} from '../../protocol/mqtt/diagnosis.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { LogLines } from './log-lines.ts'

export interface DiagnoserOptions {
  hubId: number
  log: Log
  lines: Pick<LogLines, 'read'>
  /** Makes the diagnostic archive, uncompressed. */
  bundle: () => Promise<Buffer>
  /** Removes the secrets of the hub from a text. */
  redact: (text: string) => string
}

interface Answer {
  request: string
  content: Promise<Buffer>
  cursor?: string
}

const compressed = promisify(gzip)

/**
 * Answers the cloud's requests for log records and diagnostic archives (SPEC §13). It needs no session and no journal, so that it
 * works while the hub waits for its storage. One answer is stored, in memory; the cloud fetches it part by part.
 */
export class Diagnoser {
  readonly #options: DiagnoserOptions
  #answer: Answer | undefined

  constructor(options: DiagnoserOptions) {
    this.#options = options
  }

  /** Connections that also carry the answers. */
  over(open: OpenTransport): OpenTransport {
    return (options, handlers) => {
      const transport = open(options, {
        ...handlers,
        onMessage: (topic, payload) => {
          if (parseDownTopic(this.#options.hubId, topic) === 'diagnosis') void this.#take(payload, transport)
          else handlers.onMessage(topic, payload)
        },
      })
      return transport
    }
  }

  async #take(payload: string, transport: MqttTransport): Promise<void> {
    const { data: asked } = DiagnosisRequest.safeParse(parseMessage(payload))
    if (!asked) return
    const { request, wanted, offset, bytes } = asked
    if (this.#answer?.request !== request) {
      // The answer of the first parts is gone: another one would not fit them.
      if (offset > 0) return
      this.#answer = this.#answerTo(request, wanted)
    }
    const { content, cursor } = this.#answer
    try {
      const whole = await content
      const data = whole.subarray(offset, offset + bytes).toString('base64')
      const part: DiagnosisPart = { request, offset, size: whole.length, data, ...(cursor && { cursor }) }
      await transport.publish(upTopic(this.#options.hubId, 'diagnosis'), JSON.stringify(part))
    } catch (error) {
      if (this.#answer?.request === request) this.#answer = undefined
      this.#options.log.warn({ error: String(error) }, 'a diagnosis could not be sent')
    }
  }

  #answerTo(request: string, wanted: Diagnosis): Answer {
    const { lines, bundle, redact } = this.#options
    if (wanted.kind === 'bundle') return { request, content: bundle().then(bounded) }
    const { since_ms: sinceMs, limit, after } = wanted
    const read = lines.read({ sinceMs, limit, after })
    return { request, content: compressed(redact(read.lines.join('\n'))), cursor: read.cursor }
  }
}

async function bounded(archive: Buffer): Promise<Buffer> {
  const packed = await compressed(archive)
  if (packed.length > MAX_BUNDLE_BYTES) throw new Error(`the archive has ${packed.length} bytes`)
  return packed
}

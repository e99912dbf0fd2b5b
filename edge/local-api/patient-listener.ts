import type { RequestListener } from 'node:http'
import type { Log } from '../../protocol/model/log.ts'
import { reasonOf, RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import { backoffMs, type Cancel } from '../../protocol/model/runtime.ts'
import { isRefusedPort, listen, type Listener, type ListenOptions } from './front.ts'

/** A listener that may not listen yet: then `url` is undefined. */
export interface PatientListener extends Omit<Listener, 'url'> {
  url(): string | undefined
}

const again = { firstMs: 1000, maxMs: 30_000 }

/**
 * Listens as soon as it can. The hub works without its page while the network is down and while its certificate cannot be used,
 * so the attempt is repeated with back-off. Rejects if the first attempt finds the port in use or forbidden: a person must
 * choose another one.
 */
export async function listenPatiently(
  { log, ...options }: ListenOptions & { log: Log },
  answer: RequestListener,
  tryListen = listen,
): Promise<PatientListener> {
  const { runtime, cert, key, setting = 'PORT' } = options
  const { clock, random } = runtime
  const failures = new RepeatedLine({ log, clock })
  let tls = { cert, key }
  let listener: Listener | undefined
  let isClosed = false
  let cancel: Cancel = () => {}
  async function attempt(tries: number): Promise<void> {
    try {
      const opened = await tryListen({ ...options, ...tls }, answer)
      if (isClosed) return opened.close()
      listener = opened
      failures.succeeded({ setting, url: opened.url }, 'the listener is open')
    } catch (error) {
      if (tries === 0 && isRefusedPort(error)) throw error
      failures.failed(
        reasonOf(error),
        { setting },
        'the hub runs without this listener until it can open it',
        'error',
      )
      if (!isClosed) cancel = clock.after(backoffMs(tries, again, random), () => void attempt(tries + 1))
    }
  }
  await attempt(0)
  return {
    url: () => listener?.url,
    renew(fresh) {
      listener?.renew(fresh)
      tls = fresh
    },
    async close() {
      isClosed = true
      cancel()
      await listener?.close()
    },
  }
}

/**
 * One connection to a broker. Like a serial port it is used once: after `onDisconnect` it is dead, and its owner opens a
 * new one (with a new session in its will) after a back-off.
 */
export interface MqttTransport {
  /**
   * Publishes with QoS 1. Resolves to true when the broker has accepted it, which proves nothing (I4): no state may
   * depend on it. Resolves to false where the connection ended before; never rejects.
   */
  publish(topic: string, payload: string, options?: { retain?: boolean }): Promise<boolean>
  /** Ends the connection cleanly (no will). `onDisconnect` is not called. */
  close(): void
}

export interface TransportHandlers {
  /** Connected, and every subscription granted. */
  onConnect(): void
  onDisconnect(reason: string): void
  onMessage(topic: string, payload: string): void
}

export interface TransportOptions {
  subscribe: readonly string[]
  will?: { topic: string; payload: string; retain: boolean }
}

/** Handlers are never called before it returns. */
export type OpenTransport = (options: TransportOptions, handlers: TransportHandlers) => MqttTransport

package session

// Leave lets go of a session without bringing anything home and without ending its
// machine, which does not answer: to go on with it is another session's, by its lease.
func (s *Session) Leave() error {
	if s.unwatch != nil {
		s.unwatch()
		<-s.watching
	}
	err := s.Sandbox.Close()
	if s.Fresh {
		if e := s.opts.Leases.Put(s.lease); err == nil {
			err = e
		}
	}
	return err
}

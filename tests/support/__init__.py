"""What several tests need: small real helpers, no fakes of the code under test."""

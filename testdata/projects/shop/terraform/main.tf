terraform {
  required_version = ">= 1.6"
}

variable "office_cidr" {
  description = "Addresses that may reach the instances by SSH"
  type        = string
  default     = "203.0.113.0/24"
}

resource "aws_security_group" "web" {
  name        = "shop-web"
  description = "Web traffic, and SSH for maintenance"

  ingress {
    description = "HTTPS"
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }

  ingress {
    description = "SSH"
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}
